"""What a judge is asked: a packaged prompt or the suite's own, and the variables of both."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from msgspec import Meta
from msgspec.structs import replace

from agentevals_action.entries.entry import Aside, Seen, Written, checks
from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import Case, Options
from agentevals_action.evaluators.code_judge.payload import question_text, reference_text
from agentevals_action.model.messages import wire_messages
from agentevals_action.model.suite import NamedFile
from agentevals_action.model.trace import Trace
from agentevals_action.system.paths import Folder

_ENDINGS = (".md", ".txt", ".j2", ".prompt")

#: Bytes of a prompt's file, characters of an inline prompt.
MAX_PROMPT = 200_000

#: The variables of a judge's prompt; all are text but the messages, `metadata`, `rubrics` and
#: `tool_calls`, which are data.
VARIABLES = frozenset(
    {
        "question",
        "input",
        "criteria",
        "answer",
        "output",
        "reference_answer",
        "expected_output",
        "input_messages",
        "expected_messages",
        "output_messages",
        "note",
        "metadata",
        "rubrics",
        "tool_calls",
        "file_changes",
    }
)


class PromptedOptions(Options):
    """The options of an evaluator that asks a judge, with the packaged prompt or with one of the
    suite's."""

    deterministic = False
    asks_judge = True

    prompt: Annotated[
        str | None,
        Meta(
            description=f"The judge's prompt: a path, or the text itself. Variables in double braces: {', '.join(sorted(VARIABLES))}."
        ),
    ] = None

    #: The prompt's text, so that what was checked is what is sent, and its file when it is one.
    text: Annotated[str | None, Aside()] = None
    file: Annotated[Path | None, Aside()] = None

    @checks("prompt")
    @classmethod
    def _usable(cls, prompt: str | None, seen: Seen) -> str | None:
        if prompt is not None:
            check_variables(_read_prompt(prompt, seen.folder)[0])
        return prompt

    def completed(self, written: Written) -> Self:
        """With the prompt's text."""
        if self.prompt is None:
            return self
        text, file = _read_prompt(self.prompt, written.folder)
        return replace(self, text=text, file=file)

    def files(self, folder: Folder) -> Sequence[NamedFile]:
        """The prompt's file, when it is one."""
        return (NamedFile(folder.relative(self.file), "prompt"),) if self.file else ()

    def doubts(self) -> Sequence[tuple[str, str, str]]:
        """A prompt that looks like the path of a file that is not there."""
        if (
            self.prompt is None
            or self.file is not None
            or not _looks_like_a_path(self.prompt.strip())
        ):
            return ()
        problem = "looks like a path, but names no file, and is taken as the prompt's text"
        return (
            (
                "prompt",
                problem,
                "name a file that exists, from the folder of this one; with `./` in front a missing file is a fault",
            ),
        )

    def compose(self, packaged: str, variables: Mapping[str, Any], form: str) -> str:
        """The text to send: the suite's prompt alone, or the packaged one with a fence around what
        is judged that nothing in it can know.

        `form` is what the packaged prompt ends in, the form of the reply. AttemptError when the
        suite's prompt cannot be rendered."""
        from agentevals_action import templating  # late: jinja2 is slow to import

        if self.text is None:
            # Made of all that is fenced, a mark cannot stand in it; the same question gets the same
            # one, so that its reply can be cached.
            fence = hashlib.sha256(
                templating.builtin_prompt(
                    packaged, {**variables, "form": form, "fence": ""}
                ).encode("utf-8", "replace")
            )
            return templating.builtin_prompt(
                packaged, {**variables, "form": form, "fence": fence.hexdigest()[:32]}
            )
        try:
            return templating.render_prompt(self.text, variables)
        except ValueError as error:
            raise AttemptError("evaluator", str(error)) from None


def _looks_like_a_path(text: str) -> bool:
    """Of one word, with an ending of prompts or a slash in it; what has a variable in it is a
    template."""
    if len(text.split()) != 1 or "{{" in text or "{%" in text:
        return False
    return "/" in text or text.lower().endswith(_ENDINGS)


def _read_prompt(prompt: str, folder: Folder | None) -> tuple[str, Path | None]:
    if folder is None:
        raise TypeError(
            "options that name files are read with the folder of the file that holds them"
        )
    if not prompt.strip():
        raise ValueError(
            "the prompt is empty; write one, or leave `prompt` out for the packaged one"
        )
    path = folder.file_if_meant(prompt.strip())
    if path is None:
        if len(prompt) > MAX_PROMPT:
            raise ValueError(
                f"the prompt is longer than {MAX_PROMPT:,} characters; write a shorter one"
            )
        return prompt, None
    try:
        with path.open("rb") as file:
            data = file.read(MAX_PROMPT + 1)
        if len(data) > MAX_PROMPT:
            raise ValueError(f"the prompt {prompt!r} is longer than {MAX_PROMPT:,} bytes")
        return data.decode("utf-8"), path
    except UnicodeDecodeError:
        raise ValueError(f"the prompt {prompt!r} is no UTF-8 text") from None
    except OSError as error:
        raise ValueError(f"the prompt {prompt!r} cannot be read ({error.strerror})") from None


def check_variables(text: str) -> None:
    """ValueError when a prompt is no valid template or uses a variable that nobody gives it, with
    the nearest known one."""
    from agentevals_action import templating  # late, as above

    for name in templating.unknown_variables(text, VARIABLES):
        import difflib  # late: nobody misspells most of the time

        near = difflib.get_close_matches(name, VARIABLES, n=1)
        advice = (
            f"did you mean {{{{{near[0]}}}}}?"
            if near
            else f"known are {', '.join(sorted(VARIABLES))}"
        )
        raise ValueError(f"the prompt has the unknown variable {{{{{name}}}}} in it; {advice}")


def prompt_variables(case: Case, rubrics: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The value of each of `VARIABLES` for a case; AttemptError when a file of the test cannot be
    read."""
    test, trace = case.test, case.trace
    try:
        question, reference = question_text(test), reference_text(test)
    except (OSError, ValueError) as error:
        raise AttemptError("evaluator", f"a file of the test cannot be read: {error}") from None
    return {
        "question": question,
        "input": question,
        "criteria": test.criteria or "",
        "answer": trace.output,
        "output": trace.output,
        "reference_answer": reference,
        "expected_output": reference,
        "input_messages": wire_messages(test.input),
        "expected_messages": wire_messages(test.expected_output),
        "output_messages": wire_messages(trace.messages),
        "note": test.note or "",
        "metadata": test.metadata,
        "rubrics": list(rubrics),
        "tool_calls": _tool_calls(trace),
        "file_changes": case.file_changes or "",
    }


def _tool_calls(trace: Trace) -> list[dict[str, Any]]:
    calls = (
        {
            "tool": call.name,
            "input": call.arguments,
            "output": call.output,
            "duration_ms": call.duration_ms,
        }
        for call in trace.tool_calls or ()
    )
    return [{key: value for key, value in call.items() if value is not None} for call in calls]
