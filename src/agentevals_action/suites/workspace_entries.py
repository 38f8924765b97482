"""What may stand in a workspace, by canonical names; beside `entries`, which holds the rest of a suite."""

from typing import Annotated, Literal

from pydantic import Field, Strict, StringConstraints, field_validator

from agentevals_action.suites.entries import Entry, ListOf, NonEmpty

_Milliseconds = Annotated[float, Field(gt=0, le=3_600_000, allow_inf_nan=False)]
_Command = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")] | Annotated[tuple[str, ...], Strict(False), Field(min_length=1)]


class HookEntry(Entry):
    """A command around tests."""

    command: _Command | None = Field(
        None, description="The command: a list of words, or one string, which `sh` runs. JSON is on its input."
    )
    cwd: NonEmpty | None = Field(
        None,
        description="The folder to run it in, relative to the file that declares it (the default); a leading / is the repository root.",
    )
    timeout_ms: _Milliseconds | None = Field(None, description="Its time limit in milliseconds: 60,000 before tests, 30,000 after them.")

    @field_validator("command")
    @classmethod
    def _can_be_run(cls, command: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        if isinstance(command, tuple) and not command[0].strip():
            raise ValueError("the command names no program; write it as its first word")
        if command and any("\0" in word for word in ([command] if isinstance(command, str) else command)):
            raise ValueError("the command has a NUL character in it")
        return command


class ResettingHookEntry(HookEntry):
    """A command around each test, and the state that the folder is brought back to."""

    reset: Literal["none", "fast", "strict"] | None = Field(
        None, description="Makes the folder what it was before the tests: `fast` leaves what git ignores, `strict` leaves nothing."
    )


class HooksEntry(Entry):
    """Commands around tests."""

    enabled: bool | None = Field(None, description="`false` runs no hook and resets nothing.")
    before_all: HookEntry | None = Field(None, description="Runs once, when the folder was made.")
    before_each: ResettingHookEntry | None = Field(None, description="Runs before each test.")
    after_each: ResettingHookEntry | None = Field(
        None, description="Runs after each test, when it is graded; the folder is reset after it."
    )
    after_all: HookEntry | None = Field(None, description="Runs once, before the folder is removed.")


class RepoEntry(Entry):
    """A git repository in the folder."""

    path: NonEmpty = Field(description="Where it is checked out, relative to the workspace.")
    repo: NonEmpty = Field(description="`owner/name` on GitHub, a URL, or a folder of this repository (`./…`, `/…`).")
    commit: NonEmpty | None = Field(None, description="The branch, tag or commit to check out; its own default branch when missing.")
    ancestor: Annotated[int, Field(ge=0, le=100_000)] = Field(0, description="How many first parents before it to go back.")
    sparse: ListOf[NonEmpty] = Field((), description="The only folders to check out.")


class WorkspaceEntry(Entry):
    """The folder that the agent works in."""

    template: NonEmpty | None = Field(None, description="A folder whose content it begins with, relative to the file that names it.")
    isolation: Literal["shared", "per_test", "per_case"] | None = Field(
        None, description="`shared`: one folder for the tests of the suite, one after another; `per_test`: a fresh one for each."
    )
    scope: Literal["suite", "attempt"] | None = Field(None, description="The same in other words: `suite` is shared, `attempt` per test.")
    repos: ListOf[RepoEntry] | None = Field(None, description="Repositories that are checked out in it.")
    hooks: HooksEntry | None = Field(None, description="Commands around tests.")
