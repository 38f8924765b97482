"""`code_judge` with real programs: what they are given, and every way in which they can answer or
fail to."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.evaluators import base
from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.result import EvaluatorResult
from agentevals_action.model.trace import Trace, Usage
from agentevals_action.system.files.paths import Folder
from tests.support import cases


def judged(code: str, tmp_path: Path, **given: Any) -> EvaluatorResult:
    """What comes of a judge written in Python."""
    common = {key: given.pop(key) for key in ("negate", "config", "threshold") if key in given}
    fields: dict[str, Any] = {
        key: given.pop(key) for key in ("timeout_seconds", "exit_code") if key in given
    }
    return cases.run(
        "code_judge",
        {**fields, "script": [sys.executable, "-c", code]},
        cases.case(root=tmp_path, **given),
        **common,
    )


def refused(result: EvaluatorResult) -> str:
    """The message of a result that must be an error, and no score."""
    assert (result.score, result.passed, result.gates_failed) == (None, None, ())
    assert result.error is not None
    assert result.error.kind == "evaluator"
    return result.error.message


def test_payload__carries_every_wire_form(tmp_path: Path) -> None:
    code = "import json, sys; print(json.dumps({'score': 1, 'details': json.load(sys.stdin)}))"
    messages = (
        Message(
            "assistant",
            "",
            tool_calls=(ToolCall("search", {"camelCase_key": 1}, id="c1", duration_ms=5),),
        ),
        Message("tool", "found", tool_call_id="c1"),
        Message("assistant", "the answer"),
    )
    trace = Trace(
        messages,
        tool_calls=messages[0].tool_calls,
        llm_call_count=2,
        usage=Usage(10, 5, cost_usd=0.5),
        duration_ms=9.0,
    )
    result = judged(
        code,
        tmp_path,
        trace=trace,
        asked=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}],
        expected=[
            {"role": "assistant", "content": "first"},
            {"role": "assistant", "content": "hi"},
        ],
        criteria="greets",
        note="read me",
        metadata={"someKey": {"innerKey": 1}},
        config={"myKey": 1},
    )
    got = result.details
    texts = {
        "question": "@[System]:\nBe brief.\n\n@[User]:\nhello",
        "answer": "the answer",
        "reference": "hi",
    }
    assert got["question"] == texts["question"]
    assert {got[key] for key in ("candidateAnswer", "output", "answer", "candidate_answer")} == {
        texts["answer"]
    }
    assert {got[key] for key in ("referenceAnswer", "reference_answer")} == {texts["reference"]}
    assert {got[key] for key in ("criteria", "expected_outcome")} == {"greets"}
    assert got["input"] == got["inputMessages"] == got["input_messages"]
    assert [message["role"] for message in got["input"]] == ["system", "user"]
    assert got["expected_output"] == got["expectedMessages"] == got["expected_messages"]
    assert [message["content"] for message in got["expected_output"]] == ["first", "hi"]
    assert got["outputMessages"] == got["output_messages"]
    assert got["messages"] == got["trace"]["messages"] == got["input"] + got["output_messages"]
    assert got["output_messages"][0]["tool_calls"][0]["input"] == {"camelCase_key": 1}
    assert (got["config"], got["metadata"], got["note"]) == (
        {"myKey": 1},
        {"someKey": {"innerKey": 1}},
        "read me",
    )
    assert got["traceSummary"] == {
        "eventCount": 1,
        "toolNames": ["search"],
        "toolCallCount": 1,
        "toolCallsByName": {"search": 1},
        "toolCalls": {"search": 1},
        "toolDurations": {"search": [5]},
        "errorCount": 0,
        "llmCallCount": 2,
        "inputTokens": 10,
        "outputTokens": 5,
        "totalTokens": 15,
        "cachedTokens": None,
        "cacheWriteTokens": None,
        "costUsd": 0.5,
        "costSource": "",
        "durationMs": 9.0,
        "refusedTools": [],
        "hiddenTools": [],
    }
    assert got["trace_summary"]["event_count"] == 1
    assert got["trace_summary"]["tool_calls_by_name"] == {"search": 1}
    assert got["token_usage"] == {"input": 10, "output": 5}
    assert (got["cost_usd"], got["duration_ms"]) == (0.5, 9.0)
    assert {got["workspace_path"], got["file_changes"]} == {None}
    assert [got[key] for key in ("guidelineFiles", "inputFiles", "input_files")] == [[], [], []]


def test_payload__names_the_files_of_the_input(tmp_path: Path) -> None:
    code = "import json, sys; print(json.dumps({'score': 1, 'details': json.load(sys.stdin)}))"
    (tmp_path / "a.txt").write_text("content")
    details = judged(code, tmp_path, asked=(cases.file_message(tmp_path / "a.txt"),)).details
    assert details["inputFiles"] == details["input_files"] == [str(tmp_path / "a.txt")]
    assert details["guidelineFiles"] == []
    assert details["question"] == '<file path="a.txt">\ncontent\n</file>'


def test_payload__a_file_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\xff")
    assert "a.bin" in refused(
        judged("pass", tmp_path, asked=(cases.file_message(tmp_path / "a.bin"),))
    )


@pytest.mark.parametrize(
    ("printed", "score", "hits", "misses"),
    [
        ('{"score": 0.25, "hits": ["a"], "misses": ["b"], "reasoning": "r"}', 0.25, ("a",), ("b",)),
        ('log {x} and {"step": 1}\n{"score": 0.1}\n{"score": 0.5}\nbye', 0.5, (), ()),
        (
            '{"assertions": [{"text": "a", "passed": true}, {"text": "b", "passed": false}]}',
            0.5,
            ("a",),
            ("b",),
        ),
    ],
)
def test_object__counts_as_printed(
    tmp_path: Path, printed: str, score: float, hits: tuple[str, ...], misses: tuple[str, ...]
) -> None:
    result = judged(f"print({printed!r})", tmp_path)
    assert (result.score, result.hits, result.misses, result.error) == (score, hits, misses, None)


@pytest.mark.parametrize("printed", ['{"score": 85}', '{"score": 1', "no such thing as {braces}"])
def test_object__that_cannot_be_read_is_an_error(tmp_path: Path, printed: str) -> None:
    program = f"import sys; print('the reason', file=sys.stderr); print({printed!r})"
    assert "the reason" in refused(judged(program, tmp_path, threshold=0.8))


@pytest.mark.parametrize(
    ("program", "score", "text"),
    [
        ("", 1.0, "exit code 0"),
        ("print('long enough')", 1.0, "long enough"),
        ("raise SystemExit(3)", 0.0, "exit code 3"),
        ("raise SystemExit('too short')", 0.0, "too short"),
    ],
)
def test_exit_code__is_the_result_if_it_is_declared(
    tmp_path: Path, program: str, score: float, text: str
) -> None:
    result = judged(program, tmp_path, exit_code=True)
    assert (result.score, result.hits + result.misses, result.error) == (score, (text,), None)
    assert bool(result.hits) == bool(score)


@pytest.mark.parametrize(
    "program",
    [
        "def main(): print(1)",
        "print(0.1)",
        "print('FAIL: too short')",
        "print('looks good')",
        "print('[1]')",
        "import sys; print('{\"score\": 0}', file=sys.stderr)",
    ],
)
@pytest.mark.parametrize("negate", [False, True])
def test_exit_code__zero_without_an_object_is_an_error(
    tmp_path: Path, program: str, negate: bool
) -> None:
    assert "`exit_code: true`" in refused(judged(program, tmp_path, negate=negate))


@pytest.mark.parametrize(
    ("printed", "count"),
    [
        ('{"score": 0.1}\n{"score": 0.5}\n{"score": 0.5}', 3),
        ('{"score": 0.5}\n{"score": 0.5}', 0),
        ('{"step": 1}\n{"score": 0.5}', 0),
    ],
)
def test_objects__whose_scores_differ_are_a_notice(
    tmp_path: Path, printed: str, count: int
) -> None:
    notices: list[str] = []
    result = judged(f"print({printed!r})", tmp_path, notice=notices.append)
    assert result.score == 0.5
    sentence = (
        f"the judge `e` printed {count} JSON objects with different scores; the last one counts"
    )
    assert notices == ([sentence] if count else [])


@pytest.mark.parametrize(("printed", "count"), [('{"score": 0}', 1), ("{}", 0), ("fine", 0)])
def test_exit_code__a_printed_score_that_does_not_count_is_a_notice(
    tmp_path: Path, printed: str, count: int
) -> None:
    notices: list[str] = []
    result = judged(f"print({printed!r})", tmp_path, notice=notices.append, exit_code=True)
    assert (result.score, result.error) == (1.0, None)
    assert len(notices) == count
    assert all("printed a score, which does not count" in notice for notice in notices)


def test_exit_code__another_without_an_object_is_a_miss(tmp_path: Path) -> None:
    result = judged("print('too short'); raise SystemExit(1)", tmp_path)
    assert (result.score, result.misses, result.error) == (0.0, ("too short",), None)


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("raise ValueError('of mine')", "ValueError: of mine"),
        ("print('{\"score\": 1}'); raise SystemExit(2)", "ended with exit code 2"),
        ("import os; os.kill(os.getpid(), 9)", "signal 9"),
    ],
)
def test_crash__is_an_error_also_negated(tmp_path: Path, program: str, problem: str) -> None:
    assert problem in refused(judged(program, tmp_path, negate=True, threshold=0.8))


@pytest.mark.parametrize(("own", "seconds"), [({}, 0.5), ({"timeout_seconds": 0.25}, 0.25)])
def test_time_limit__is_the_tests_or_its_own(
    tmp_path: Path, own: dict[str, Any], seconds: float
) -> None:
    code = "import sys, time; print('{\"score\": 1}', flush=True); print('still here', file=sys.stderr, flush=True); time.sleep(60)"
    message = refused(judged(code, tmp_path, timeout=0.5, negate=True, **own))
    assert f"did not end within {seconds} s" in message


def test_program__missing_is_an_error(tmp_path: Path) -> None:
    message = refused(
        cases.run(
            "code_judge", {"script": ["./no-such-judge"]}, cases.case(root=tmp_path), negate=True
        )
    )
    problem = "evals/EVAL.yaml:7:3: the judge `e` runs no-such-judge, which does not exist; "
    assert problem in message


@pytest.mark.parametrize(
    ("cwd", "where"),
    [(None, "evals"), ("../other", "other")],
)
def test_folder__is_that_of_the_file_that_declares_it(
    tmp_path: Path, cwd: str | None, where: str
) -> None:
    for name in ("evals/judges", "other"):
        (tmp_path / name).mkdir(parents=True)
    code = "import json, os; print(json.dumps({'score': 1, 'hits': [os.getcwd()]}))"
    fields = {"script": [sys.executable, "-c", code]} | ({"cwd": cwd} if cwd else {})
    made = cases.evaluator("code_judge", fields, tmp_path, "evals")
    result = asyncio.run(base.run_evaluator(made, cases.case(root=tmp_path)))
    assert result.hits == (str((tmp_path / where).resolve()),)


def test_folder__outside_the_repository_is_refused(tmp_path: Path) -> None:
    (error,) = cases.errors("code_judge", {"script": ["true"], "cwd": "../.."}, tmp_path)
    assert error.steps == ("cwd",)
    assert "leaves the repository" in str(error)


def test_environment__is_what_the_case_allows(tmp_path: Path) -> None:
    code = "import json, os; print(json.dumps({'score': 1, 'hits': sorted(os.environ)}))"
    result = judged(code, tmp_path, environment={"ALLOWED": "1", "PATH": "/usr/bin:/bin"})
    assert set(result.hits) - {"LC_CTYPE"} == {"ALLOWED", "PATH"}


def test_failure__with_names_withheld_states_how_to_let_them_through(tmp_path: Path) -> None:
    message = refused(judged("raise ValueError", tmp_path, withheld=("MY_API_KEY", "OTHER_TOKEN")))
    assert "MY_API_KEY, OTHER_TOKEN" in message
    assert "input `env`" in message


def test_output__beyond_what_is_kept_is_an_error(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.write('x' * (11 << 20)); print('{\"score\": 1}')"
    assert "wrote more than 10 MB" in refused(judged(code, tmp_path))


def test_metadata__that_is_no_json_is_an_error(tmp_path: Path) -> None:
    assert "cannot be written" in refused(judged("pass", tmp_path, metadata={"a": float("nan")}))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            "python3 judge.py --level 'very strict'",
            ("python3", "judge.py", "--level", "very strict"),
        ),
        ('grep -q "a|b && c"', ("grep", "-q", "a|b && c")),
        ("python3 \\\n  judge.py\n", ("python3", "judge.py")),
        (["grep", "-q", "a | b"], ("grep", "-q", "a | b")),
    ],
)
def test_script__is_split_as_a_shell_would(script: object, words: tuple[str, ...]) -> None:
    assert cases.evaluator("code_judge", {"script": script}).model_dump()["script"] == words


def test_files__are_those_of_the_script_of_a_shell(tmp_path: Path) -> None:
    (tmp_path / "check.py").write_text("import rules\n")
    (tmp_path / "rules.py").write_text("")
    script = ["sh", "-c", "python3 check.py"]
    judge = cases.evaluator("code_judge", {"script": script}, tmp_path)
    assert set(cases.named(judge, Folder(tmp_path, tmp_path))) == {"check.py", "rules.py"}


def test_files__are_the_words_that_exist_and_what_lies_beside_judges(tmp_path: Path) -> None:
    root, evals = tmp_path / "repo", tmp_path / "repo" / "evals"
    (evals / "judges" / "deep").mkdir(parents=True)
    for name in (
        "judges/check.py",
        "judges/shared.py",
        "judges/deep/far.py",
        "tool.sh",
        "beside_tool.sh",
        "rules.json",
    ):
        (evals / name).write_text("")
    (tmp_path / "outside.py").write_text("")
    (evals / "judges" / "loop").symlink_to("loop")
    (evals / "judges" / "link.py").symlink_to("deep/far.py")
    (evals / "judges" / "link_out.py").symlink_to(tmp_path / "outside.py")
    folder = Folder(root, evals)
    script = [
        "python3",
        "judges/check.py",
        "./tool.sh",
        "../../outside.py",
        str(tmp_path / "outside.py"),
        "judges/link_out.py",
        "--flag",
        "--rules=rules.json",
        "judges",
        "x" * 5000,
    ]
    options = cases.evaluator("code_judge", {"script": script}, root, "evals")
    assert cases.named(options, folder) == {
        "evals/judges/check.py": "judge script",
        "evals/judges/shared.py": "judge script",
        "evals/judges/link.py": "judge script",
        "evals/judges/deep/far.py": "judge script",
        "evals/tool.sh": "judge script",
        "evals/rules.json": "judge script",
    }
