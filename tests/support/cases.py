"""Cases and evaluators for the tests of evaluators."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import ValidationError

from agentevals_action import evaluators
from agentevals_action.evaluators import base
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.evaluator import Ask, Case, Evaluator, Judges
from agentevals_action.model.messages import Block, Message, read_message
from agentevals_action.model.result import EvaluatorResult, JudgeRecord
from agentevals_action.model.suite import Test
from agentevals_action.model.trace import Trace
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.system.files.paths import Folder
from agentevals_action.targets.message_texts import prompt_text
from agentevals_action.validation.field_errors import FieldError, field_errors
from agentevals_action.validation.file_model import FileModel

HERE = Location("evals/EVAL.yaml", 7, 3)


async def no_judge(evaluator: Evaluator, messages: Sequence[Message], number: int) -> Trace:
    """For evaluators that must not ask anybody."""
    raise AssertionError(f"{evaluator.name} asked a judge")


def no_judges(evaluator: Evaluator) -> Judges:
    """For evaluators whose programs must not ask anybody."""
    raise AssertionError(f"{evaluator.name} wants a judge")


def replying(*replies: str, heard: list[str] | None = None) -> Ask:
    """A judge that gives these replies in turn; `heard` collects what it was sent, as text."""
    left = list(replies)

    async def ask(evaluator: Evaluator, messages: Sequence[Message], number: int) -> Trace:
        if heard is not None:
            heard.append(prompt_text(messages))
        return reply(left.pop(0))

    return ask


async def echo(evaluator: Evaluator, messages: Sequence[Message], number: int) -> Trace:
    """A judge that says back what it was sent, as `cat` does."""
    return reply(prompt_text(messages))


def reply(text: str) -> Trace:
    """A reply of the model `judge-1`."""
    return Trace((Message("assistant", text),), model="judge-1")


def file_message(path: Path) -> Message:
    """A user's message that is a file."""
    return Message("user", (file_block("file", path.name, path),))


def file_block(kind: Literal["file", "image"], value: str, path: Path) -> Block:
    """A block with the content of a file, as a suite has it."""
    return Block(kind, value, path, path.read_bytes())


def messages(data: Any, role: str = "user") -> tuple[Message, ...]:
    """A string as one message, a list of wire messages read, a tuple of messages as it is."""
    if isinstance(data, tuple):
        return data
    return tuple(
        read_message(item)
        for item in ([{"role": role, "content": data}] if isinstance(data, str) else data)
    )


def case(
    output: str = "",
    *,
    ask: Ask = no_judge,
    judges: Callable[[Evaluator], Judges] = no_judges,
    root: Path = Path("/nowhere"),
    trace: Trace | None = None,
    asked: Any = "What is it?",
    expected: Any = (),
    timeout: float = 20,
    withheld: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
    file_changes: str | None = None,
    notice: Callable[[str], None] = lambda sentence: None,
    why_advisory: Callable[[JudgeRecord], str] = lambda judge: "",
    **test: Any,
) -> Case:
    """A case in which the agent answered `output` (or left `trace`)."""
    children = ChildContext(environment or {"PATH": os.environ["PATH"]}, withheld=withheld)
    asked_test = Test(
        **{"id": "t", "location": HERE, "evaluators": (), **test},
        input=messages(asked),
        expected_output=messages(expected, "assistant"),
    )
    return Case(
        test=asked_test,
        evaluators=asked_test.evaluators,
        trace=trace or Trace((Message("assistant", output),)),
        root=root,
        timeout=timeout,
        program=lambda words, folder, variables: children.program(
            words, folder, variables=variables
        ),
        ask=ask,
        judges=judges,
        judge_key=lambda evaluator: evaluator.type,
        file_changes=file_changes,
        notice=notice,
        why_advisory=why_advisory,
    )


def evaluator(
    kind: str,
    data: Mapping[str, Any] | None = None,
    root: Path = Path("/nowhere"),
    below: str = ".",
    **common: Any,
) -> Evaluator:
    """An evaluator of a type, as the loader makes it for a file in a folder below `root`; `common`
    are the fields that all types have."""
    if threshold := common.pop("threshold", None):
        common["required"] = threshold
    model = evaluators.EVALUATORS[kind]
    made = model.model_validate(dict(data or {}), context=Folder(root, root / below))
    return made.model_copy(update={"name": "e", "location": HERE, **common})


def errors(kind: str, data: Mapping[str, Any], root: Path = Path("/nowhere")) -> list[FieldError]:
    """The errors of options that are not valid."""
    return model_errors(evaluators.EVALUATORS[kind], data, Folder(root, root))


def model_errors(
    model: type[FileModel], data: Mapping[str, Any], folder: Folder | None = None
) -> list[FieldError]:
    """The errors of data that are not valid for a model."""
    with pytest.raises(ValidationError) as caught:
        model.model_validate(dict(data), context=folder)
    return field_errors(caught.value, data)


def run(kind: str, data: Mapping[str, Any] | None, scored: Case, **common: Any) -> EvaluatorResult:
    """One case scored by one evaluator, as in a run."""
    made = evaluator(kind, data, scored.root, **common)
    return asyncio.run(base.run_evaluator(made, scored))


def named(made: Evaluator, folder: Folder) -> dict[str, str]:
    """The files that an evaluator names, with their role."""
    return {file.path: file.role for file in made.named_files(folder)}
