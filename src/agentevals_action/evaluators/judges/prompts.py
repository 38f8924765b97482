"""The prompt of a judge: a packaged template or the suite's own, and the variables of both."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from agentevals_action import templating
from agentevals_action.errors import AttemptError
from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.evaluator import Case, Evaluator
from agentevals_action.model.messages import wire_messages, wire_tool_call
from agentevals_action.system.files.paths import Folder
from agentevals_action.targets.message_texts import prompt_text, reference_text
from agentevals_action.validation.field_errors import nearest
from agentevals_action.validation.file_model import NonEmpty, get_folder

#: Bytes of a prompt's file, characters of an inline prompt.
MAX_PROMPT = 200_000


#: The variables of a prompt; all are text except the messages, `metadata`, `rubrics` and
#: `tool_calls`.
_VARIABLES: Mapping[str, Callable[[Case], Any]] = {
    "question": lambda case: prompt_text(case.test.input),
    "input": lambda case: prompt_text(case.test.input),
    "criteria": lambda case: case.test.criteria or "",
    "answer": lambda case: case.trace.output,
    "output": lambda case: case.trace.output,
    "reference_answer": lambda case: reference_text(case.test.expected_output),
    "expected_output": lambda case: reference_text(case.test.expected_output),
    "input_messages": lambda case: wire_messages(case.test.input),
    "expected_messages": lambda case: wire_messages(case.test.expected_output),
    "output_messages": lambda case: wire_messages(case.trace.messages),
    "note": lambda case: case.test.note or "",
    "metadata": lambda case: case.test.metadata,
    "rubrics": lambda _: [],
    "tool_calls": lambda case: [wire_tool_call(call) for call in case.trace.tool_calls or ()],
    "file_changes": lambda case: case.file_changes or "",
}
#: The variables that have what the agent did.
OF_AGENT = frozenset({"answer", "output", "output_messages", "tool_calls", "file_changes"})
#: The variables that have what is asked, and what makes an answer good.
OF_TEST = frozenset(_VARIABLES) - OF_AGENT


class PromptedEvaluator(Evaluator):
    """An evaluator that asks a judge, with the packaged prompt `template` or the suite's. Its
    prompt reads variables of the test, and one or more of each set in `of_agent`. `asks` names the
    field with what the judge is asked: at a single test, it is no part of how the judge judges."""

    template: ClassVar[str]
    asks: ClassVar[str] = ""
    of_agent: ClassVar[Sequence[frozenset[str]]] = (OF_AGENT,)
    deterministic = False
    asks_judge = True

    target: NonEmpty | None = Field(
        default=None, exclude=True, description="Name of the target that judges."
    )

    prompt: str | None = Field(
        default=None,
        description="The judge's prompt: a path, or the text itself. Variables stand in double "
        "braces, as {{question}} and {{answer}}.",
    )

    temperature: Annotated[float, Field(ge=0, le=2)] | None = Field(
        default=None,
        exclude_if=lambda value: value is None,  # so that other fingerprints stay the same
        description="The temperature of the judge's model for this evaluator, 0-2.",
    )
    max_steps: Annotated[int, Field(ge=1, le=50)] | None = Field(
        default=None,
        exclude=True,
        description="Read and without effect: a judge is one call, without tools.",
    )

    _text: str | None = PrivateAttr(None)
    _file: Path | None = PrivateAttr(None)

    @field_validator("prompt")
    @classmethod
    def _check_prompt(cls, prompt: str | None, info: ValidationInfo) -> str | None:
        if prompt is not None:
            _read_prompt(prompt, get_folder(info), cls.of_agent)
        return prompt

    @model_validator(mode="after")
    def _load_prompt(self, info: ValidationInfo) -> Self:
        if self.prompt is not None:
            self._text, self._file = _read_prompt(self.prompt, get_folder(info), self.of_agent)
        return self

    def named_files(self, folder: Folder) -> Sequence[NamedFile]:
        """The file of the prompt, if the field is a path."""
        return (NamedFile(folder.relative(self._file), "prompt"),) if self._file else ()

    def warnings(self) -> Sequence[tuple[str, str, str]]:
        """Fields without effect."""
        if self.max_steps is None:
            return super().warnings()
        problem = "limits the steps of AgentV's own judge; here a judge is one call"
        return (*super().warnings(), ("max_steps", problem, "remove it"))

    def reads_criteria(self) -> bool:
        """Whether its prompt has the criteria; the packaged prompts have."""
        text = self._text
        return text is None or "criteria" in templating.unknown_variables(text, frozenset())

    def judge_names(self) -> Sequence[str]:
        """The field `target`."""
        return (self.target,) if self.target else ()

    def judge_temperature(self) -> float | None:
        """The field."""
        return self.temperature

    def judging(self) -> Mapping[str, Any]:
        """Its own fields, with the text of its prompt: how it judges. Rubrics of one test are part
        of what it is asked, as the criteria of the test are."""
        text = self._text or templating.packaged_text(f"judges/{self.template}")
        fields = {**self.own_fields(), "prompt": text}
        is_shared = self.origin == "suite"
        return {name: fields[name] for name in fields if is_shared or name != self.asks}

    def compose(self, variables: Mapping[str, Any], form: str) -> str:
        """The text to send: the suite's prompt alone, or the packaged one, which fences the data
        with a delimiter that the data cannot contain.

        `form` is the form of the reply, at the end of the packaged prompt. AttemptError if the
        suite's prompt cannot be rendered."""
        if self._text is None:
            # A digest of all fenced data cannot be in that data, and the same question gets the
            # same prompt, so that its reply can be cached.
            given = {**variables, "form": form}
            data = templating.builtin_prompt(self.template, {**given, "fence": ""})
            fence = hashlib.sha256(data.encode("utf-8", "replace")).hexdigest()[:32]
            return templating.builtin_prompt(self.template, {**given, "fence": fence})
        try:
            return templating.render_text(self._text, variables)
        except ValueError as error:
            raise AttemptError("evaluator", str(error)) from None


def _read_prompt(
    prompt: str, folder: Folder, of_agent: Sequence[frozenset[str]]
) -> tuple[str, Path | None]:
    """The text of a prompt, and its file if it has one; ValueError if it cannot be used."""
    if not prompt.strip():
        raise ValueError("the prompt is empty; write one, or remove `prompt` for the packaged one")
    text, path = prompt, folder.file_if_meant(prompt.strip())
    if path is not None:
        try:
            text = folder.read(path, f"the prompt {prompt!r}", MAX_PROMPT).decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"the prompt {prompt!r} is not valid UTF-8") from None
    elif len(prompt) > MAX_PROMPT:
        raise ValueError(
            f"the prompt is longer than {MAX_PROMPT:,} characters; write a shorter one"
        )
    variables = OF_TEST.union(*of_agent)
    for name in templating.unknown_variables(text, variables):
        meant = nearest(name, variables)
        choices = f"known are {', '.join(sorted(variables))}"
        advice = f"did you mean {{{{{meant}}}}}?" if meant else choices
        raise ValueError(f"the prompt has the unknown variable {{{{{name}}}}}; {advice}")
    used = templating.unknown_variables(text, frozenset())
    if missing := [f"{{{{{min(names)}}}}}" for names in of_agent if names.isdisjoint(used)]:
        raise ValueError(
            f"the prompt reads nothing of the agent; write {' and '.join(missing)} in it"
        )
    return text, path


def prompt_variables(case: Case, rubrics: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The value of each variable of a prompt; AttemptError if a file of the test cannot be read."""
    try:
        values = {name: value(case) for name, value in _VARIABLES.items()}
    except (OSError, ValueError) as error:
        raise AttemptError("evaluator", f"a file of the test cannot be read: {error}") from None
    return {**values, "rubrics": list(rubrics)}
