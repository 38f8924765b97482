"""What may stand in a workspace, by canonical names; beside `entries`, which holds the rest of a
suite."""

from typing import Annotated, Literal

from msgspec import Meta

from agentevals_action.entries.entry import Entry, NonEmpty, Seen, checks
from agentevals_action.suites.schema_models import ListOf

_Milliseconds = Annotated[float, Meta(gt=0, le=3_600_000)]
_Command = (
    Annotated[str, Meta(min_length=1, pattern=r"\S")]
    | Annotated[tuple[str, ...], Meta(min_length=1)]
)


class HookEntry(Entry):
    """A command around tests."""

    command: Annotated[
        _Command | None,
        Meta(
            description="The command: a list of words, or one string, which `sh` runs. JSON is on its input."
        ),
    ] = None
    cwd: Annotated[
        NonEmpty | None,
        Meta(
            description="The folder to run it in, relative to the file that declares it (the default); a leading / is the repository root."
        ),
    ] = None
    timeout_ms: Annotated[
        _Milliseconds | None,
        Meta(description="Its time limit in milliseconds: 60,000 before tests, 30,000 after them."),
    ] = None

    @checks("command")
    @classmethod
    def _can_be_run(
        cls, command: str | tuple[str, ...] | None, _seen: Seen
    ) -> str | tuple[str, ...] | None:
        if isinstance(command, tuple) and not command[0].strip():
            raise ValueError("the command names no program; write it as its first word")
        if command and any(
            "\0" in word for word in ([command] if isinstance(command, str) else command)
        ):
            raise ValueError("the command has a NUL character in it")
        return command


class ResettingHookEntry(HookEntry):
    """A command around each test, and the state that the folder is brought back to."""

    reset: Annotated[
        Literal["none", "fast", "strict"] | None,
        Meta(
            description="Makes the folder what it was before the tests: `fast` leaves what git ignores, `strict` leaves nothing."
        ),
    ] = None


class HooksEntry(Entry):
    """Commands around tests."""

    enabled: Annotated[
        bool | None, Meta(description="`false` runs no hook and resets nothing.")
    ] = None
    before_all: Annotated[
        HookEntry | None, Meta(description="Runs once, when the folder was made.")
    ] = None
    before_each: Annotated[
        ResettingHookEntry | None, Meta(description="Runs before each test.")
    ] = None
    after_each: Annotated[
        ResettingHookEntry | None,
        Meta(description="Runs after each test, when it is graded; the folder is reset after it."),
    ] = None
    after_all: Annotated[
        HookEntry | None, Meta(description="Runs once, before the folder is removed.")
    ] = None


class RepoEntry(Entry):
    """A git repository in the folder."""

    path: Annotated[
        NonEmpty, Meta(description="Where it is checked out, relative to the workspace.")
    ]
    repo: Annotated[
        NonEmpty,
        Meta(
            description="`owner/name` on GitHub, a URL, or a folder of this repository (`./…`, `/…`)."
        ),
    ]
    commit: Annotated[
        NonEmpty | None,
        Meta(
            description="The branch, tag or commit to check out; its own default branch when missing."
        ),
    ] = None
    ancestor: Annotated[
        int, Meta(ge=0, le=100_000, description="How many first parents before it to go back.")
    ] = 0
    sparse: Annotated[ListOf[NonEmpty], Meta(description="The only folders to check out.")] = ()


class WorkspaceEntry(Entry):
    """The folder that the agent works in."""

    template: Annotated[
        NonEmpty | None,
        Meta(
            description="A folder whose content it begins with, relative to the file that names it."
        ),
    ] = None
    isolation: Annotated[
        Literal["shared", "per_test", "per_case"] | None,
        Meta(
            description="`shared`: one folder for the tests of the suite, one after another; `per_test`: a fresh one for each."
        ),
    ] = None
    scope: Annotated[
        Literal["suite", "attempt"] | None,
        Meta(description="The same in other words: `suite` is shared, `attempt` per test."),
    ] = None
    repos: Annotated[
        ListOf[RepoEntry] | None, Meta(description="Repositories that are checked out in it.")
    ] = None
    hooks: Annotated[HooksEntry | None, Meta(description="Commands around tests.")] = None
