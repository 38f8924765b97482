import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.result import ErrorInfo, SampleResult, TestResult, TraceSummary
from agentevals_action.model.target import Provider, Request
from agentevals_action.model.trace import Trace, Usage
from agentevals_action.results.jsonl import encode_row
from agentevals_action.system.files.paths import Folder
from tests.support import command, results, suites, targets

TRACE = Trace(
    messages=(
        Message("assistant", "", tool_calls=(ToolCall("look", {"x": 1}),)),
        Message("assistant", "hi"),
    ),
    tool_calls=(ToolCall("look", {"x": 1}),),
    llm_call_count=2,
    usage=Usage(11, 7, 3, cost_usd=0.5),
    duration_ms=1500,
)


def sample(answer: str = "hi", **fields: Any) -> SampleResult:
    messages = ({"role": "assistant", "content": answer},)
    return SampleResult(**{"output_messages": messages, **fields})


def row(id: str = "first", *samples: SampleResult, **fields: Any) -> TestResult:
    stored = results.result(id, path=fields.pop("path", "EVAL.yaml"))
    return replace(stored, samples=samples or (sample(),), **fields)


def write(folder: Path, *rows: TestResult, name: str = "results.jsonl") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(encode_row(result) + b"\n" for result in rows))
    return path


def request(
    root: Path, folder: str = "", suite: str = "EVAL.yaml", question: str = "q", **fields: Any
) -> Request:
    return targets.request(
        root, "hello", folder=root / folder, suite=suite, question=question, **fields
    )


def replay(*requests: Request, path: str = "results.jsonl") -> Sequence[Trace]:
    async def work(provider: Provider) -> Sequence[Trace]:
        return await asyncio.gather(*map(provider.complete, requests))

    return targets.use({"provider": "replay", "path": path}, work)


def refused(asked: Request) -> AttemptError:
    with pytest.raises(AttemptError) as caught:
        replay(asked)
    return caught.value


def test_complete__the_trace_is_that_of_the_earlier_run(tmp_path: Path) -> None:
    summary = TraceSummary(
        tool_call_count=1,
        llm_call_count=2,
        input_tokens=11,
        output_tokens=7,
        cached_tokens=3,
        cost_usd=0.5,
        duration_ms=1500,
    )
    call = {"role": "assistant", "content": "", "tool_calls": [{"tool": "look", "input": {"x": 1}}]}
    messages = (call, {"role": "assistant", "content": "hi"})
    stored = sample(output_messages=messages, trace_summary=summary)
    write(tmp_path, row("first", stored, replace(stored, trace_summary=None)))
    known, unknown = replay(*(request(tmp_path, attempt=attempt) for attempt in (0, 1)))
    assert known == replace(TRACE, cached=True)
    assert unknown == Trace(TRACE.messages, cached=True)


def test_complete__samples_are_used_in_turn(tmp_path: Path) -> None:
    write(tmp_path, row("first", sample("one"), sample("two")))
    traces = replay(*(request(tmp_path, attempt=attempt) for attempt in range(3)))
    assert [trace.output for trace in traces] == ["one", "two", "one"]


def test_complete__the_path_is_relative_to_the_suite_or_the_repository(tmp_path: Path) -> None:
    write(
        tmp_path, row("first", sample("near"), path="evals/EVAL.yaml"), name="evals/results.jsonl"
    )
    write(tmp_path, row("first", sample("far"), path="evals/EVAL.yaml"))
    asked = request(tmp_path, folder="evals", suite="evals/EVAL.yaml")
    paths = ("results.jsonl", "/results.jsonl", "../results.jsonl")
    assert [replay(asked, path=path)[0].output for path in paths] == ["near", "far", "far"]


def test_complete__a_result_belongs_to_its_suite(tmp_path: Path) -> None:
    first = row("first", sample("a"), path="a/EVAL.yaml")
    others = (row("first", sample(name), path="b/EVAL.yaml") for name in ("one", "two"))
    write(tmp_path, first, *others)
    assert replay(request(tmp_path, suite="a/EVAL.yaml"))[0].output == "a"
    error = refused(request(tmp_path, suite="b/EVAL.yaml"))
    assert "has 2 results of the test `first` of `b/EVAL.yaml`" in str(error)


@pytest.mark.parametrize(
    ("stored", "problem"),
    [
        (row("other"), "results.jsonl has no results of the test `first` of `EVAL.yaml`"),
        (row(path="a/EVAL.yaml"), "results.jsonl has no results of the test `first`"),
        (
            row("first", SampleResult(error=ErrorInfo(kind="timeout", message="3 s"))),
            "is an error (timeout): 3 s",
        ),
        (
            row("first", sample("Error", error=ErrorInfo(kind="target", message="3 s"))),
            "is an error (target): 3 s",
        ),
        (row("first", SampleResult(score=1.0, verdict="pass")), "has no answer"),
        (replace(row(), samples=()), "has no answer"),
        (row(fingerprint=results.fingerprint("of then")), "answers another question"),
        (row(fingerprint=None), "answers another question"),
    ],
)
def test_complete__without_an_answer_it_is_an_error_of_the_test(
    tmp_path: Path, stored: TestResult, problem: str
) -> None:
    write(tmp_path, stored)
    error = refused(request(tmp_path))
    assert error.kind == "target"
    assert problem in str(error)


def test_complete__an_error_of_a_judge_does_not_matter(tmp_path: Path) -> None:
    write(tmp_path, row("first", sample(error=ErrorInfo(kind="judge", message="no reply"))))
    assert replay(request(tmp_path))[0].output == "hi"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no file 'results.jsonl'"),
        ("", "results.jsonl has no result"),
        ("{}\n", "results.jsonl cannot be read: line 1: "),
        ("\nnonsense\n", "results.jsonl cannot be read: line 2: "),
    ],
)
def test_complete__a_file_that_cannot_be_used(
    tmp_path: Path, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "results.jsonl").write_text(content)
    error = refused(request(tmp_path))
    assert error.kind == "configuration"
    assert message in str(error)


def test_complete__the_incomplete_last_row_of_a_killed_run_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, row("first"))
    path.write_bytes(path.read_bytes() + encode_row(row("second"))[:100])
    assert replay(request(tmp_path))[0].output == "hi"
    assert "no results of the test `second`" in str(refused(request(tmp_path, eval_id="second")))


def test_files__the_results_are_a_file_of_the_suite(tmp_path: Path) -> None:
    write(tmp_path, row(), name="evals/results.jsonl")
    options = targets.target({"provider": "replay", "path": "results.jsonl"})
    (file,) = options.named_files(Folder(tmp_path, tmp_path / "evals"))
    assert (file.path, file.role) == ("evals/results.jsonl", "results")
    assert list(options.named_files(Folder(tmp_path, tmp_path))) == []
    outside = targets.target({"provider": "replay", "path": "../../results.jsonl"})
    with pytest.raises(ValueError, match="leaves the repository"):
        outside.named_files(Folder(tmp_path, tmp_path))


@pytest.mark.slow
def test_run__is_graded_anew_at_no_cost_with_the_figures_of_then(tmp_path: Path) -> None:
    reply = {"output": "hello", "cost_usd": 0.25, "token_usage": {"input": 3, "output": 4}}
    targets = [
        {"name": "live", "provider": "cli", "command": ["cat", "reply.json"]},
        {"name": "stored", "provider": "replay", "path": "recorded.jsonl"},
    ]
    budget = {"type": "cost", "budget": 0.1}
    suite = {"name": "suite", "tests": [{"id": "greets", "input": "hello"}], "assert": [budget]}
    files = {".agentv/targets.yaml": json.dumps(targets), "reply.json": json.dumps(reply)}
    suites.write(tmp_path, {**files, "EVAL.yaml": json.dumps(suite)})
    assert command.run(tmp_path, "run", "--target", "live", "--output", "recorded.jsonl").code == 1
    budget["budget"] = 0.3
    suites.write(tmp_path, {"reply.json": "", "EVAL.yaml": json.dumps(suite)})
    options = ("--target", "stored", "--output", "again.jsonl", "--max-cost-usd", "0.01")
    done = command.run(tmp_path, "run", *options)
    assert done.code == 0, done.err
    stored = json.loads((tmp_path / "again.jsonl").read_text())
    assert (stored["verdict"], stored["spent"]["costUsd"]) == ("pass", 0)
    assert stored["traceSummary"]["costUsd"] == 0.25


def test_run__an_agent_cannot_write_what_a_later_test_replays(tmp_path: Path) -> None:
    forge = "sed -i s/bye/hello/g recorded.jsonl; echo hello"
    targets = [
        {"name": "live", "provider": "cli", "command": ["sh", "-c", forge]},
        {"name": "plain", "provider": "cli", "command": ["echo", "hello"]},
        {"name": "stored", "provider": "replay", "path": "recorded.jsonl"},
    ]
    tests = [
        {"id": name, "input": "Hi", "conversation_id": "turns", "execution": {"target": name}}
        for name in ("live", "stored")  # in this order
    ]
    asked = [{"type": "contains", "value": "hello"}]
    files = {
        ".agentv/targets.yaml": json.dumps(targets),
        "EVAL.yaml": json.dumps({"name": "suite", "tests": tests, "assert": asked}),
    }
    suites.write(tmp_path, files)
    own = command.run(tmp_path, "run", "--target", "plain", "--output", "recorded.jsonl")
    assert own.code == 0, own.err
    recorded = (tmp_path / "recorded.jsonl").read_text().replace("hello", "bye")
    (tmp_path / "recorded.jsonl").write_text(recorded)
    done = command.run(tmp_path, "run", "--output", "new.jsonl", "--max-concurrency", "1")
    assert "hello" in (tmp_path / "recorded.jsonl").read_text()
    assert done.code == 1, done.err
    results = map(json.loads, (tmp_path / "new.jsonl").read_text().splitlines())
    assert {result["evalId"]: result["verdict"] for result in results} == {
        "live": "pass",
        "stored": "fail",
    }
