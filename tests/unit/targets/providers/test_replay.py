import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.result import ErrorInfo, SampleResult, TestResult, TraceSummary
from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage
from agentevals_action.results.jsonl import encode_row
from agentevals_action.system.files.paths import Folder
from agentevals_action.targets.base import Request
from tests.support import command, results, suites, targets

FIGURES = TraceSummary(
    tool_call_count=1,
    llm_call_count=2,
    input_tokens=11,
    output_tokens=7,
    total_tokens=18,
    cost_usd=0.5,
    duration_ms=1500,
    event_count=1,
)
CALLED = {"role": "assistant", "content": "", "tool_calls": [{"tool": "look", "input": {"x": 1}}]}


def sample(
    answer: str = "hi", figures: TraceSummary | None = FIGURES, **fields: Any
) -> SampleResult:
    said = {"role": "assistant", "content": answer}
    return SampleResult(
        score=1.0,
        verdict="pass",
        candidate_answer=answer,
        output_messages=(CALLED, said),
        trace_summary=figures,
        **fields,
    )


def row(
    id: str = "first", *samples: SampleResult, path: str = "EVAL.yaml", **fields: Any
) -> TestResult:
    return replace(
        results.result(id, path=path),
        **{"samples": samples or (sample(),), "question": "", **fields},
    )


def write(path: Path, *rows: TestResult | Mapping[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        encode_row(one).decode() if isinstance(one, TestResult) else json.dumps(one) for one in rows
    ]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def request(
    root: Path, text: str = "hello", folder: str = "", suite: str = "EVAL.yaml", **fields: Any
) -> Request:
    return targets.request(root, text, folder=root / folder, suite=suite, **fields)


def replay(*requests: Request, **fields: Any) -> Sequence[Trace]:
    async def asked() -> Sequence[Trace]:
        provider = targets.options(
            {"provider": "replay", "path": "results.jsonl", **fields}
        ).connect(targets.context({}))
        try:
            return await asyncio.gather(*(provider.complete(one) for one in requests))
        finally:
            await provider.close()

    return asyncio.run(asked())


def refused(one: Request, **fields: Any) -> AttemptError:
    with pytest.raises(AttemptError) as caught:
        replay(one, **fields)
    return caught.value


def test_complete__the_trace_is_the_earlier_run_s(tmp_path: Path) -> None:
    write(tmp_path / "results.jsonl", row())
    (trace,) = replay(request(tmp_path))
    assert trace == Trace(
        messages=(
            Message("assistant", "", tool_calls=(ToolCall("look", {"x": 1}),)),
            Message("assistant", "hi"),
        ),
        tool_calls=(ToolCall("look", {"x": 1}),),
        llm_call_count=2,
        usage=Usage(11, 7, cost_usd=0.5),
        duration_ms=1500,
        cached=True,
    )


def test_complete__what_was_not_known_then_is_not_known_now(tmp_path: Path) -> None:
    write(tmp_path / "results.jsonl", row("first", sample(figures=None)))

    async def completed() -> Trace:
        target = targets.target({"provider": "replay", "path": "results.jsonl"})
        return await targets.calls({}).complete(target, request(tmp_path))

    trace = asyncio.run(completed())
    assert (
        trace.tool_calls,
        trace.usage.input_tokens,
        trace.usage.cost_usd,
        trace.duration_ms,
    ) == (
        None,
        None,
        None,
        None,
    )


def test_complete__samples_are_used_in_turn(tmp_path: Path) -> None:
    write(tmp_path / "results.jsonl", row("first", sample("one"), sample("two")))
    traces = replay(*(request(tmp_path, attempt=attempt) for attempt in range(5)))
    assert [trace.output for trace in traces] == ["one", "two", "one", "two", "one"]


def test_complete__a_row_without_samples_is_its_answer(tmp_path: Path) -> None:
    write(
        tmp_path / "results.jsonl",
        replace(row(), samples=(), candidate_answer="alone", trace_summary=FIGURES),
    )
    (trace,) = replay(request(tmp_path))
    assert (trace.output, trace.usage.input_tokens) == ("alone", 11)


def test_complete__many_rows_and_many_requests(tmp_path: Path) -> None:
    write(tmp_path / "results.jsonl", *(row(f"t{n}", sample(f"answer {n} ü")) for n in range(500)))
    traces = replay(*(request(tmp_path, eval_id=f"t{n}") for n in reversed(range(500))))
    assert [trace.output for trace in traces] == [f"answer {n} ü" for n in reversed(range(500))]


def test_complete__the_path_is_the_suite_s_or_the_repository_s(tmp_path: Path) -> None:
    write(tmp_path / "evals/results.jsonl", row("first", sample("near"), path="evals/EVAL.yaml"))
    write(tmp_path / "results.jsonl", row("first", sample("far"), path="evals/EVAL.yaml"))
    asked = request(tmp_path, folder="evals", suite="evals/EVAL.yaml")
    assert [
        replay(asked, path=path)[0].output
        for path in ("results.jsonl", "/results.jsonl", "../results.jsonl")
    ] == [
        "near",
        "far",
        "far",
    ]


def test_complete__suites_with_tests_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    paths = ("a/EVAL.yaml", "b/EVAL.yaml", "b/more.eval.yaml")
    write(tmp_path / "results.jsonl", *(row("first", sample(path), path=path) for path in paths))
    traces = replay(
        *(request(tmp_path, folder=path.partition("/")[0], suite=path) for path in paths),
        path="/results.jsonl",
    )
    assert [trace.output for trace in traces] == list(paths)


def test_complete__the_result_of_another_suite_is_not_taken(tmp_path: Path) -> None:
    write(tmp_path / "results.jsonl", row(path="a/EVAL.yaml"))
    error = refused(request(tmp_path, suite="EVAL.yaml"))
    assert error.kind == "target"
    assert str(error) == "results.jsonl has `first` of `a/EVAL.yaml`, and not of `EVAL.yaml`"


def test_complete__results_of_several_targets(tmp_path: Path) -> None:
    write(
        tmp_path / "results.jsonl",
        row("first", sample("a"), target="one"),
        row("first", sample("b"), target="two"),
    )
    error = refused(request(tmp_path))
    assert (
        "2 results for `first`: of `EVAL.yaml` (target `one`) and `EVAL.yaml` (target `two`)"
        in str(error)
    )
    assert "`source_target`" in error.hint
    assert replay(request(tmp_path), source_target="two")[0].output == "b"
    assert "no result of the test `first` of the target `three`" in str(
        refused(request(tmp_path), source_target="three")
    )


def test_complete__a_test_without_a_row_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "results.jsonl", row("other"))
    error = refused(request(tmp_path))
    assert (error.kind, str(error)) == (
        "target",
        "results.jsonl has no result of the test `first`",
    )


@pytest.mark.parametrize(
    "stored",
    [
        SampleResult(error=ErrorInfo(kind="timeout", message="no answer within 3 s")),
        SampleResult(
            candidate_answer="Error: no answer within 3 s",
            output_messages=({"role": "assistant", "content": "Error"},),
            error=ErrorInfo(kind="target", message="no answer within 3 s"),
        ),
    ],
)
def test_complete__a_row_that_ended_in_an_error_is_one(
    tmp_path: Path, stored: SampleResult
) -> None:
    write(tmp_path / "results.jsonl", row("first", stored))
    assert f"is an error ({stored.error and stored.error.kind}): no answer within 3 s" in str(
        refused(request(tmp_path))
    )


def test_complete__what_a_judge_could_not_tell_is_no_matter(tmp_path: Path) -> None:
    write(
        tmp_path / "results.jsonl",
        row("first", sample(error=ErrorInfo(kind="judge", message="no reply"))),
    )
    assert replay(request(tmp_path))[0].output == "hi"


def test_complete__a_row_that_keeps_no_answer_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "results.jsonl", row("first", SampleResult(score=1.0, verdict="pass")))
    assert "has no answer" in str(refused(request(tmp_path)))


def test_complete__the_answer_to_another_question_is_not_taken(tmp_path: Path) -> None:
    write(tmp_path / "results.jsonl", row(question="hello", fingerprint=None))
    assert replay(request(tmp_path, "hello"))[0].output == "hi"
    assert "answers another question" in str(refused(request(tmp_path, "hello!")))
    assert "answers another question" in str(refused(request(tmp_path, "hello!", question="q")))


def test_complete__a_question_is_all_that_is_asked_and_not_its_last_text(tmp_path: Path) -> None:
    write(
        tmp_path / "results.jsonl",
        row(question="hello", fingerprint=results.fingerprint("of then")),
    )
    assert replay(request(tmp_path, "hello", question="of then"))[0].output == "hi"
    assert "answers another question" in str(
        refused(request(tmp_path, "hello", question="with another file"))
    )


def test_complete__a_secret_in_a_question_accepts_no_other(tmp_path: Path) -> None:
    masked = "the key *** is mine"
    own = row("own", question=masked, fingerprint=results.fingerprint("of then"))
    write(tmp_path / "results.jsonl", own, row("foreign", question=masked, fingerprint=None))
    assert (
        replay(request(tmp_path, "the key abcdefgh is mine", eval_id="own", question="of then"))[
            0
        ].output
        == "hi"
    )
    for name in ("own", "foreign"):
        assert "answers another question" in str(
            refused(request(tmp_path, "is it yours?", eval_id=name, question="of now"))
        )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no file 'results.jsonl'"),
        ("", "results.jsonl has no result"),
        ("{}\n", "results.jsonl:1: not a valid result: "),
        ("\nnonsense\n", "results.jsonl:2: not a valid result: "),
        ('{"test_id": "a", "score": 7}\n', "a score of 7 is not in 0-1"),
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


def test_complete__a_last_row_that_a_killed_run_left_broken_is_missing(tmp_path: Path) -> None:
    whole = encode_row(row("first")).decode()
    (tmp_path / "results.jsonl").write_text(f"{whole}\n{whole.replace('first', 'second')[:100]}")
    assert replay(request(tmp_path))[0].output == "hi"
    assert "no result of the test `second`" in str(refused(request(tmp_path, eval_id="second")))


def test_complete__a_file_is_read_once(tmp_path: Path) -> None:
    async def asked() -> None:
        provider = targets.options({"provider": "replay", "path": "results.jsonl"}).connect(
            targets.context({})
        )
        assert (await provider.complete(request(tmp_path))).output == "hi"
        write(tmp_path / "results.jsonl", row("other"))
        assert (await provider.complete(request(tmp_path))).output == "hi"

    write(tmp_path / "results.jsonl", row())
    asyncio.run(asked())


def test_complete__rows_of_agentv(tmp_path: Path) -> None:
    figures = {"token_usage": {"input": 3, "output": 4}, "cost_usd": 0.1, "duration_ms": 20}
    write(
        tmp_path / "run/index.jsonl",
        {
            "test_id": "inline",
            "suite": "greetings",
            "score": 1.0,
            "output": "hello there",
            "target": "a",
            **figures,
        },
        {
            "test_id": "filed",
            "eval_path": "/home/other/repo/evals/EVAL.yaml",
            "score": 0.4,
            "output_path": "filed/answer.md",
        },
        {
            "test_id": "failed",
            "suite": "greetings",
            "score": 0,
            "error": "Error: boom",
            "output": "Error occurred: boom",
        },
    )
    suites.write(tmp_path, {"run/filed/answer.md": "from its file\n"})

    def asked(name: str) -> Request:
        return request(tmp_path, eval_id=name, suite="evals/EVAL.yaml")

    inline, filed = replay(asked("inline"), asked("filed"), path="run/index.jsonl")
    assert (
        inline.output,
        inline.usage.input_tokens,
        inline.usage.cost_usd,
        inline.duration_ms,
    ) == (
        "hello there",
        3,
        0.1,
        20,
    )
    assert (filed.output, filed.duration_ms) == ("from its file", None)
    assert "Error: boom" in str(refused(asked("failed"), path="run/index.jsonl"))


def test_files__the_results_are_a_file_of_the_suite(tmp_path: Path) -> None:
    write(tmp_path / "evals/results.jsonl", row())
    options = targets.options({"provider": "replay", "path": "results.jsonl"})
    assert list(options.files(Folder(tmp_path, tmp_path / "evals"))) == ["evals/results.jsonl"]
    assert list(options.files(Folder(tmp_path, tmp_path))) == []
    with pytest.raises(ValueError, match="leaves the repository"):
        targets.options({"provider": "replay", "path": "../../results.jsonl"}).files(
            Folder(tmp_path, tmp_path)
        )


@pytest.mark.slow
def test_run__is_graded_anew_at_no_cost_with_the_figures_of_then(tmp_path: Path) -> None:
    agents = """\
- {name: live, provider: cli, command: [cat, reply.json], judge_target: live}
- {name: stored, provider: replay, path: /recorded.jsonl}
"""
    suite = """\
name: suite
tests:
  - id: greets
    input: hello
    assert:
      - {type: contains, value: hello, required: true}
      - {type: cost, budget: 0.1}
"""
    reply = {
        "output": "hello",
        "cost_usd": 0.25,
        "token_usage": {"input": 3, "output": 4},
        "duration_ms": 77,
    }
    suites.write(
        tmp_path,
        {
            ".agentv/targets.yaml": agents,
            "evals/EVAL.yaml": suite,
            "evals/reply.json": json.dumps(reply),
        },
    )
    assert command.run(tmp_path, "run", "--target", "live", "--output", "recorded.jsonl").code == 1
    (tmp_path / "evals/reply.json").unlink()
    text = suite.replace("budget: 0.1", "budget: 0.3")
    suites.write(tmp_path, {"evals/EVAL.yaml": text})

    done = command.run(
        tmp_path, "run", "--target", "stored", "--output", "again.jsonl", "--max-cost-usd", "0.01"
    )

    assert done.code == 0, done.err
    stored = json.loads((tmp_path / "again.jsonl").read_text())
    assert (stored["verdict"], stored["spent"]["costUsd"], stored["spent"]["cachedReplies"]) == (
        "pass",
        0,
        1,
    )
    assert (
        stored["traceSummary"]["costUsd"],
        stored["traceSummary"]["durationMs"],
        stored["samples"][0]["cached"],
    ) == (0.25, 77, True)


def test_run__an_agent_cannot_write_what_a_later_test_replays(tmp_path: Path) -> None:
    forge = "sed -i s/bye/hello/g recorded.jsonl; echo hello"
    targets = [
        {"name": "live", "provider": "cli", "command": ["sh", "-c", forge]},
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
    recorded = replace(row("stored", sample("bye")), fingerprint=None, question="")
    write(tmp_path / "recorded.jsonl", recorded)
    done = command.run(tmp_path, "run", "--output", "new.jsonl", "--max-concurrency", "1")
    assert "hello" in (tmp_path / "recorded.jsonl").read_text()
    assert done.code == 1, done.err
    results = map(json.loads, (tmp_path / "new.jsonl").read_text().splitlines())
    assert {result["evalId"]: result["verdict"] for result in results} == {
        "live": "pass",
        "stored": "fail",
    }


def test_run__another_file_in_the_question_is_another_question(tmp_path: Path) -> None:
    agents = """\
- {name: live, provider: cli, command: [echo, hello]}
- {name: stored, provider: replay, path: /recorded.jsonl}
"""
    suite = """\
name: suite
input: [{role: system, content: be brief}]
tests:
  - id: greets
    input:
      - {role: user, content: [{type: file, value: said.txt}]}
      - {role: assistant, content: yes?}
      - {role: user, content: and now?}
    assert: [{type: contains, value: hello}]
"""
    suites.write(
        tmp_path,
        {".agentv/targets.yaml": agents, "evals/EVAL.yaml": suite, "evals/said.txt": "first"},
    )
    assert command.run(tmp_path, "run", "--target", "live", "--output", "recorded.jsonl").code == 0
    suites.write(tmp_path, {"evals/EVAL.yaml": suite.replace("be brief", "be kind")})
    assert command.run(tmp_path, "run", "--target", "stored").code == 0, (
        "what the agent is told of itself is no part of the question"
    )

    suites.write(tmp_path, {"evals/said.txt": "second"})
    done = command.run(tmp_path, "run", "--target", "stored")

    assert done.code == 3
    assert "answers another question" in done.out
