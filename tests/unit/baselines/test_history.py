"""What a run adds to the memory of a suite, how memories become one, and what their files are
worth."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.baselines import history, history_branch, history_format
from agentevals_action.baselines.history import Bounds
from agentevals_action.model.history import PastAnswer, PastSample, Series, SuiteHistory
from agentevals_action.model.result import (
    ErrorInfo,
    SampleResult,
    SuiteRun,
    TestResult,
    TraceSummary,
)
from agentevals_action.results import scoring
from tests.support import results
from tests.support.results import fingerprint

C1, C2 = "1" * 40, "2" * 40
T1, T2 = "2026-01-01T10:00:00.000Z", "2026-01-02T10:00:00.000Z"
PATH = "evals/EVAL.yaml"


def sample(score: float = 1.0, answer: str | None = "an answer", **fields: Any) -> SampleResult:
    messages = ({"role": "assistant", "content": answer},) if answer is not None else ()
    failed = fields.get("gates_failed", ())
    return SampleResult(
        score=score, verdict=scoring.verdict_of(score, failed), output_messages=messages, **fields
    )


def ran(*samples: SampleResult, id: str = "test", **fields: Any) -> TestResult:
    return replace(results.result(id, **fields), samples=samples)


def remembered(*found: TestResult, commit: str = C1, time: str = T1) -> SuiteHistory:
    return history.of_run(results.run(*found, path=PATH), commit, time)[0]


def only(kept: SuiteHistory, id: str = "test") -> Series:
    (series,) = kept.tests[id]
    return series


def test_run__adds_its_samples_with_their_figures() -> None:
    told = sample(0.7, trace_summary=TraceSummary(cost_usd=0.25, duration_ms=12.5, input_tokens=3))
    gate = sample(1.0, gates_failed=("safe",))
    series = only(remembered(ran(told, gate)))
    assert series.samples == (
        PastSample(T1, C1, 0, 0.7, "borderline", (), 0.25, 12.5),
        PastSample(T1, C1, 1, 1.0, "fail", ("safe",)),
    )
    assert series.answer == PastAnswer((T1, C1, 1), gate.output_messages, None, None)
    assert series.fingerprint == fingerprint()


def test_run__leaves_out_errors_and_what_confirmed_a_suspicion() -> None:
    failed = SampleResult(error=ErrorInfo(kind="target", message="down"))
    closed = SampleResult(
        score=0.0,
        verdict="fail",
        gates_failed=("g",),
        error=ErrorInfo(kind="judge", message="down"),
    )
    found = ran(failed, sample(), closed, sample(0.0), sample(0.0), confirming=2)
    assert [(one.index, one.verdict) for one in only(remembered(found)).samples] == [(1, "pass")]
    assert remembered(ran(failed)).tests == {}
    assert remembered(replace(ran(sample()), fingerprint=None)).tests == {}


def test_time__is_told_in_one_form_whatever_its_zone() -> None:
    assert only(remembered(ran(sample()), time="2026-01-01T12:00:00+02:00")).samples[0].time == T1
    with pytest.raises(ValueError, match="time zone"):
        remembered(ran(sample()), time="2026-01-01T12:00:00")


def test_answer__that_is_too_large_is_left_out_and_counted() -> None:
    huge = sample(answer="x" * history.ANSWER_BYTES)
    kept, large = history.of_run(results.run(ran(sample(answer="small"), huge)), C1, T1)
    assert (only(kept).answer, large) == (
        PastAnswer((T1, C1, 0), ({"role": "assistant", "content": "small"},)),
        1,
    )
    kept, large = history.of_run(
        results.run(ran(huge), ran(sample(answer=None), id="other")), C1, T1
    )
    assert (only(kept).answer, only(kept, "other").answer, large) == (None, None, 1)


def test_answer__that_is_no_json_is_left_out_and_counted() -> None:
    odd = replace(sample(), output_messages=({"role": "assistant", "content": float("nan")},))
    kept, large = history.of_run(results.run(ran(odd)), C1, T1)
    assert (only(kept).answer, large) == (None, 1)


def nested(levels: int) -> dict[str, Any]:
    """A message of that many levels."""
    inside: Any = "deep"
    for _ in range(levels - 3):
        inside = [inside]
    return {"role": "assistant", "content": "", "tool_calls": [{"tool": "t", "input": inside}]}


@pytest.mark.parametrize(
    ("levels", "left_out"), [(194, 0), (195, 1), (500, 1), (980, 1), (2000, 1)]
)
def test_answer__that_is_nested_too_deeply_to_be_read_again_is_left_out_and_counted(
    levels: int, left_out: int
) -> None:
    deep = replace(sample(), output_messages=(nested(levels),))
    kept, large = history.of_run(results.run(ran(sample(), deep)), C1, T1)
    answer = only(kept).answer
    assert (answer and answer.at[2], large) == (0 if left_out else 1, left_out)
    text, words = history_format.format_history(kept)
    assert (history_format.read_history(text or "", PATH), words) == (kept, "")


def test_cached_answer__counts_once_and_only_where_no_other_is_known() -> None:
    again, fresh = sample(cached=True), sample(0.0)
    twice = history.merged(remembered(ran(again)), remembered(ran(again), commit=C2, time=T2))
    assert [(one.commit, one.cached) for one in only(twice).samples] == [(C1, True)]
    assert only(twice).used == T2
    both = history.merged(twice, remembered(ran(fresh), commit=C2, time=T2))
    assert [(one.commit, one.cached) for one in only(both).samples] == [(C2, False)]
    mixed = only(remembered(ran(fresh, again)))
    assert ([one.index for one in mixed.samples], mixed.answer and mixed.answer.at) == (
        [0],
        (T1, C1, 0),
    )


def test_merging__keeps_the_last_fifty_samples() -> None:
    runs = [
        remembered(ran(sample()), time=f"2026-01-01T{hour:02}:{minute:02}:00Z")
        for hour in range(2)
        for minute in range(60)
    ]
    whole = runs[0]
    for one in runs[1:]:
        whole = history.merged(whole, one)
    times = [one.time for one in only(whole).samples]
    assert (len(times), times[0], times[-1]) == (
        50,
        "2026-01-01T01:10:00.000Z",
        "2026-01-01T01:59:00.000Z",
    )


def test_merging__keeps_the_three_latest_fingerprints_latest_first() -> None:
    whole = remembered(ran(sample(), print=fingerprint(agent="0")), time=T1)
    for number in (1, 2, 3, 1):
        time = f"2026-01-02T0{len(whole.tests['test'])}:0{number}:00Z"
        whole = history.merged(
            whole, remembered(ran(sample(), print=fingerprint(agent=str(number))), time=time)
        )
    assert {series.fingerprint.agent for series in whole.tests["test"]} == {"1", "2", "3"}
    assert [series.used for series in whole.tests["test"]] == sorted(
        (series.used for series in whole.tests["test"]), reverse=True
    )


def test_merging__forgets_tests_that_are_gone_for_long() -> None:
    old = remembered(
        ran(sample(), id="old"), ran(sample(), id="older"), time="2026-01-01T00:00:00Z"
    )
    soon = history.merged(old, remembered(ran(sample()), time="2026-01-31T00:00:00Z"))
    assert set(soon.tests) == {"old", "older", "test"}
    assert set(
        history.merged(old, remembered(ran(sample()), time="2026-01-31T00:00:01Z")).tests
    ) == {"test"}


def test_merging__remembers_tests_whose_answers_came_out_of_the_cache() -> None:
    whole = remembered(ran(sample()), time="2026-01-01T00:00:00Z")
    for day in range(2, 31, 7):
        found = (ran(sample(cached=True)), ran(sample(), id="busy"))
        whole = history.merged(whole, remembered(*found, time=f"2026-03-{day:02}T00:00:00Z"))
    assert [one.time for one in only(whole).samples] == ["2026-01-01T00:00:00.000Z"]


def test_merging__keeps_the_latest_answer_whose_sample_is_there() -> None:
    first = remembered(ran(sample(answer="first")), time=T1)
    second = remembered(ran(sample(answer="x" * history.ANSWER_BYTES)), commit=C2, time=T2)
    answer = only(history.merged(second, first)).answer
    assert answer is not None
    assert answer.output_messages[0]["content"] == "first"
    third = remembered(ran(sample(answer="third")), commit=C2, time=T2)
    assert only(history.merged(first, third)).answer == only(third).answer
    assert only(history.within(history.merged(first, second), Bounds(samples=1))).answer is None


TIMES = [f"2026-{1 + days // 28:02}-{1 + days % 28:02}T00:00:00.000Z" for days in range(41)]
#: Every sample that there may be: one draw each, of which a history takes a hundred.
SAMPLES = st.sampled_from(
    [
        PastSample(
            time,
            commit,
            place,
            score,
            scoring.verdict_of(score, failed),
            failed,
            cost,
            None,
            cached,
        )
        for time, commit, place, score, failed, cost, cached in itertools.product(
            TIMES, (C1, C2), range(3), (0.0, 0.7, 1.0), ((), ("safe",)), (None, 0.5), (False, True)
        )
    ]
)
PRINTS = st.sampled_from([fingerprint(agent=str(number)) for number in range(5)])


@st.composite
def serieses(draw: st.DrawFn) -> Series:
    samples = draw(st.lists(SAMPLES, min_size=1, max_size=6))
    answer = draw(
        st.none()
        | st.text(max_size=3).map(
            lambda text: PastAnswer(samples[0].at, ({"role": "assistant", "content": text},))
        )
    )
    used = max(draw(st.sampled_from(TIMES)), *(sample.time for sample in samples))
    return Series(draw(PRINTS), tuple(samples), used, answer)


@st.composite
def histories(draw: st.DrawFn) -> SuiteHistory:
    tests = draw(
        st.dictionaries(
            st.sampled_from("abc"),
            st.lists(serieses(), min_size=1, max_size=5).map(tuple),
            max_size=3,
        )
    )
    return history.within(
        SuiteHistory(PATH, draw(st.sampled_from(["one", "two"])), tests), Bounds()
    )


@given(histories(), histories())
def test_merging__in_either_order_and_again_is_the_same(
    one: SuiteHistory, other: SuiteHistory
) -> None:
    whole = history.merged(one, other)
    assert history.merged(other, one) == whole
    assert history.merged(whole, whole) == whole
    assert history.merged(whole, one) == whole
    assert history.merged(one, one) == one


@given(histories(), histories(), st.integers(1, 3))
def test_merging__stays_within_bounds(one: SuiteHistory, other: SuiteHistory, most: int) -> None:
    whole = history.merged(one, other, Bounds(most, most, answers=False))
    for kept in whole.tests.values():
        assert len(kept) <= most
        assert len({series.fingerprint for series in kept}) == len(kept)
        for series in kept:
            assert len(series.samples) <= most
            assert series.answer is None
            assert list(series.samples) == sorted(series.samples, key=lambda sample: sample.at)


@given(histories())
def test_file__says_what_was_remembered(kept: SuiteHistory) -> None:
    text, left = history_format.format_history(kept)
    assert text is not None
    assert (history_format.read_history(text, PATH), left) == (kept, "")


def written(*found: TestResult) -> dict[str, Any]:
    text, _ = history_format.format_history(remembered(*found))
    data: dict[str, Any] = json.loads(text or "")
    return data


def changed(*path: str | int, to: Any) -> str:
    """A whole file but for the value at a path."""
    data = written(ran(sample()))
    place: Any = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return json.dumps(data)


SERIES = ("tests", "test", 0)
ROW = (*SERIES, "samples", 0)
ANSWER = (*SERIES, "answer")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty, too large or not a text"),
        ("{", "it is not valid JSON"),
        ("<<<<<<< HEAD", "it is not valid JSON"),
        ("\ufeff" + changed("version", to=1), "it is not valid JSON"),
        (changed("version", to=1) + "{}", "it is not valid JSON"),
        ("[]", "expected an object"),
        ('{"more":' + "[" * 100_000, "it is nested more than 200 levels deep"),
        ("{}", "it is of version None, not 1"),
        (changed("version", to=2), "it is of version 2, not 1"),
        ('{"version":"two","runs":{}}', "it is of version 'two', not 1"),
        (changed("suite", to="other.yaml"), "it is of another suite"),
        (changed("suite", to=None), "`suite`: expected a text"),
        (changed("more", to=1), "`more`: the field is unknown"),
        (
            changed(*SERIES, "more", to=1),
            "`tests.test[0].more`: the field is unknown",
        ),
        (
            changed(*ROW, "more", to=1),
            "`tests.test[0].samples[0].more`: the field is unknown",
        ),
        (
            changed(*ANSWER, "more", to=1),
            "`tests.test[0].answer.more`: the field is unknown",
        ),
        (changed("runs", to={}), "`runs`: expected a list"),
        (
            changed("runs", 0, to=[T1]),
            "`runs[0][1]`: it is missing",
        ),
        (changed("runs", 0, to=[T1, C1, C2]), "`runs[0]`: expected at most 2 items"),
        (
            changed("runs", 0, 0, to="yesterday"),
            "`runs[0][0]`: expected a text that matches ^[0-9]{4}",
        ),
        (
            changed("runs", 0, 0, to=f"{T1}\n"),
            "`runs[0][0]`: expected a text that matches ^[0-9]{4}",
        ),
        (
            changed("runs", 0, 0, to=T1.replace("1", "\u0661")),
            "`runs[0][0]`: expected a text that matches ^[0-9]{4}",
        ),
        (
            changed("runs", 0, 0, to="2026-01-01T10:00:00.000+00:00"),
            "`runs[0][0]`: expected a text that matches ^[0-9]{4}",
        ),
        (
            changed("runs", 0, 0, to="2026-02-31T00:00:00.000Z"),
            "`runs[0][0]`: this time does not exist",
        ),
        (
            changed(*SERIES, "used", to="now"),
            "`tests.test[0].used`: expected a text that matches ^[0-9]{4}",
        ),
        (
            changed(*SERIES, "used", to="2026-13-01T00:00:00.000Z"),
            "`tests.test[0].used`: this time does not exist",
        ),
        (
            changed(*SERIES, "used", to="0001-01-01T00:00:00.000Z"),
            "a time in it is out of range",
        ),
        (
            changed("runs", 0, 1, to="main"),
            "`runs[0][1]`: expected a text that matches ^([0-9a-f]{40}",
        ),
        (
            changed("runs", 0, 1, to=f"{C1}\n"),
            "`runs[0][1]`: expected a text that matches ^([0-9a-f]{40}",
        ),
        (
            changed("runs", 0, 1, to="1" * 41),
            "`runs[0][1]`: expected a text that matches ^([0-9a-f]{40}",
        ),
        (changed("tests", "test", to=[]), "`tests.test`: expected at least one item"),
        (
            changed(*SERIES, "samples", to=[]),
            "`tests.test[0].samples`: expected at least one item",
        ),
        (changed(*SERIES, "agent", to=1), "`tests.test[0].agent`: expected a text"),
        (changed(*ROW, "r", to=1), "a sample belongs to no run"),
        (
            changed(*ROW, "r", to=-1),
            "`tests.test[0].samples[0].r`: expected a number that is 0 or more",
        ),
        (
            changed(*ROW, "r", to=0.0),
            "`tests.test[0].samples[0].r`: expected a whole number",
        ),
        (
            changed(*ROW, "r", to=False),
            "`tests.test[0].samples[0].r`: expected a whole number",
        ),
        (
            changed(*ROW, "n", to=-1),
            "`tests.test[0].samples[0].n`: expected a number that is 0 or more",
        ),
        (
            changed(*ROW, "s", to=2),
            "`tests.test[0].samples[0].s`: expected a number that is 1 or less",
        ),
        (
            changed(*ROW, "s", to=-0.1),
            "`tests.test[0].samples[0].s`: expected a number that is 0 or more",
        ),
        (changed(*ROW, "s", to=float("nan")), "NaN is not valid JSON"),
        (changed(*ROW, "t", to=float("inf")), "Infinity is not valid JSON"),
        (
            changed(*ROW, "s", to="1"),
            "`tests.test[0].samples[0].s`: expected a number",
        ),
        (
            changed(*ROW, "s", to=True),
            "`tests.test[0].samples[0].s`: expected a number",
        ),
        (
            changed(*ROW, "v", to="great"),
            "`tests.test[0].samples[0].v`: expected `pass`, `borderline` or `fail`",
        ),
        (changed(*ROW, "v", to="fail"), "a verdict is `fail` with a score of 1"),
        (changed(*ROW, "g", to=["safe"]), "a verdict is `pass` with a score of 1"),
        (
            changed(*ROW, "g", to=[1]),
            "`tests.test[0].samples[0].g[0]`: expected a text",
        ),
        (
            changed(*ROW, "k", to=1),
            "`tests.test[0].samples[0].k`: expected `true` or `false`",
        ),
        (
            changed(*ROW, "c", to=1).replace('"c": 1', '"c": 1e999'),
            "`tests.test[0].samples[0].c`: expected a finite number",
        ),
        (
            changed(*ROW, "t", to=1).replace('"t": 1', '"t": 1e999'),
            "`tests.test[0].samples[0].t`: expected a finite number",
        ),
        (
            changed(*ROW, "t", to=1).replace('"t": 1', f'"t": {"9" * 400}'),
            "`tests.test[0].samples[0].t`: expected a finite number",
        ),
        (changed(*ANSWER, "r", to=1), "a sample belongs to no run"),
        (
            changed(*ANSWER, "messages", to=["said"]),
            "`tests.test[0].answer.messages[0]`: expected an object",
        ),
        (
            changed(*ANSWER, "messages", to=[{"role": "judge"}]),
            "a message is an object with a role",
        ),
        (
            changed(*ANSWER, "messages", 0, "content", to="\udfff"),
            "it is not valid JSON",
        ),
        (
            changed(*ANSWER, "messages", 0, "n", to=1).replace('"n": 1', '"n": 1e999'),
            "an answer is too large",
        ),
        (
            changed(*ANSWER, "trace", to={"costUsd": "much"}),
            "`tests.test[0].answer.trace.costUsd`: expected a number",
        ),
        (
            changed(*ANSWER, "trace", to={"inputTokens": 1.5}),
            "`tests.test[0].answer.trace.inputTokens`: expected a whole number",
        ),
        (
            changed(*ANSWER, "changes", to="x" * 70_000),
            "an answer is too large",
        ),
        (
            changed(*ANSWER, "messages", to=[nested(195)]),
            "it is nested more than 200 levels deep",
        ),
        (
            changed(*ANSWER, "messages", to=1).replace(
                '"messages": 1', '"messages": [{"x": ' + "[" * 100_000
            ),
            "it is nested more than 200 levels deep",
        ),
    ],
)
def test_file__that_is_damaged_is_not_believed(text: str, words: str) -> None:
    found = history_format.read_history(text, PATH)
    assert isinstance(found, str)
    assert found.startswith(words)


@pytest.mark.parametrize("part", [("more" * 100_000,), (*ROW, "more" * 100_000)])
def test_file__its_damage_is_one_short_line_with_its_location(part: tuple[str | int, ...]) -> None:
    found = history_format.read_history(changed(*part, to=1), PATH)
    assert isinstance(found, str)
    assert found.startswith("`tests.test[0].samples[0].moremore" if part[1:] else "`moremore")
    assert len(found) == 200


@pytest.mark.parametrize(
    ("part", "to"),
    [
        (("runs", 0, 1), "a" * 64),
        (("name",), ""),
        ((*ROW, "n"), 10**30),
        ((*ROW, "s"), 1),
        ((*ROW, "c"), -1),
        ((*ROW, "t"), 10**30),
        ((*ROW, "c"), None),
        ((*ROW, "g"), []),
        ((*ROW, "k"), False),
        ((*SERIES, "answer"), None),
        ((*ANSWER, "trace"), {}),
        ((*ANSWER, "trace"), {"costUsd": 1, "ofLater": {"x": []}}),
        ((*ANSWER, "changes"), ""),
        (
            (*ANSWER, "messages", 0, "of_theirs"),
            {"": [0, -0.0, 10**30, 1e-7, True, None, "\u0000\u2028🙂"]},
        ),
    ],
)
def test_file__with_anything_that_could_have_been_written_is_believed(
    part: tuple[str | int, ...], to: Any
) -> None:
    assert isinstance(history_format.read_history(changed(*part, to=to), PATH), SuiteHistory)


class Files(dict[str, str]):
    """A branch in memory; `looked` are the files that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.looked: list[str] = []

    def read(self, name: str) -> str:
        self.looked.append(name)
        return self[name]

    def store(self, *runs: SuiteRun, commit: str = C1, time: str = T1) -> Sequence[str]:
        self.looked.clear()
        update = history_branch.update_files(self.keys(), self.read, runs, commit, time, {})
        self.update(update.files)
        return (*update.files, *update.notices)


def test_files__are_these_bytes() -> None:
    # A reader of another version, and the branch's history, stand on them.
    told = sample(
        0.7,
        "ünï 🙂",
        trace_summary=TraceSummary(cost_usd=1e-7, duration_ms=1e16, tool_names=("a",)),
        cached=True,
    )
    gate = sample(1.0, "half \ud800", gates_failed=("safe",), file_changes="diff\n")
    files, name = Files(), history_format.file_name(PATH)
    files.store(results.run(ran(told, id="a"), ran(sample(), gate, id="b"), path=PATH))
    print_ = f'"question":"q","grading":"g","agent":"a","used":"{T1}"'
    assert files[name] == (
        f'{{"version":1,"suite":"evals/EVAL.yaml","name":"suite","runs":[["{T1}","{C1}"]],"tests":{{'
        f'"a":[{{{print_},"samples":[{{"r":0,"n":0,"s":0.7,"v":"borderline","c":1e-07,"t":1e+16,"k":true}}],'
        '"answer":{"r":0,"n":0,"messages":[{"role":"assistant","content":"ünï 🙂"}],'
        '"trace":{"eventCount":0,"toolNames":["a"],"costUsd":1e-07,"durationMs":1e+16}}}],'
        f'"b":[{{{print_},"samples":[{{"r":0,"n":0,"s":1.0,"v":"pass"}},{{"r":0,"n":1,"s":1.0,"v":"fail","g":["safe"]}}],'
        '"answer":{"r":0,"n":1,"messages":[{"role":"assistant","content":"half ?"}],"changes":"diff\\n"}}]}}\n'
    )
    assert files["index.json"] == (
        f'{{"version":1,"suites":{{"{name}":{{"suite":"evals/EVAL.yaml","name":"suite","tests":2,"samples":3,"answers":2,'
        f'"commit":"{C1}","time":"{T1}"}}}}}}\n'
    )


def test_file_names__are_safe_and_differ() -> None:
    paths = [
        "a/EVAL.yaml",
        "a-EVAL.yaml",
        "A/eval.yaml",
        "ünïcode/EVAL.yaml",
        "\udc80",
        "\udc81",
        "../../x",
        "x" * 500,
        "",
        "🙂",
    ]
    names = [history_format.file_name(path) for path in paths]
    assert len(set(names)) == len(names)
    assert names[0].startswith("suites/a-eval-yaml-")
    assert all(
        len(name) < 100
        and set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-./")
        and ".." not in name
        for name in names
    )


def test_file__lets_go_of_the_least_needed_first() -> None:
    first, second = (
        remembered(
            ran(sample(answer="y" * 300), print=fingerprint(agent=str(number))),
            time=f"2026-01-0{number}T00:00:00Z",
        )
        for number in (1, 2)
    )
    whole = history.merged(first, second)
    full, words = history_format.format_history(whole)
    assert words == ""
    lesser, words = history_format.format_history(whole, len((full or "").encode()) - 1)
    assert words == "results of earlier versions of its tests"
    assert [series.fingerprint.agent for series in _read(lesser).tests["test"]] == ["2"]
    least, words = history_format.format_history(whole, len((lesser or "").encode()) - 1)
    assert (words, only(_read(least)).answer) == ("answers to grade again", None)
    assert history_format.format_history(whole, 10) == (None, "all of it")


def _read(text: str | None) -> SuiteHistory:
    found = history_format.read_history(text or "", PATH)
    assert isinstance(found, SuiteHistory)
    return found


def test_update__writes_suite_and_indexes_and_nothing_when_nothing_is_new() -> None:
    files, name = Files(), history_format.file_name(PATH)
    own = ("trends.json", "index.json", "README.md")
    assert files.store(results.run(ran(sample()))) == (name, *own)
    assert files.store(results.run(ran(sample()))) == ()
    assert (
        files.store(
            results.run(ran(SampleResult(error=ErrorInfo(kind="target", message="down")))), time=T2
        )
        == ()
    )
    assert files.store(results.run(ran(sample())), commit=C2, time=T2) == (
        name,
        *own,
    )
    assert files.looked == ["index.json", "trends.json", name]
    assert (
        f"| `{PATH}` | 1 | 2 | 1 | `222222222222` | 2026-01-02T10:00Z |"
        in files["README.md"].splitlines()
    )


def test_update__leaves_other_suites_alone() -> None:
    files = Files()
    files.store(
        results.run(ran(sample()), path="a/EVAL.yaml"),
        results.run(ran(sample()), path="b/EVAL.yaml"),
    )
    before = files[history_format.file_name("a/EVAL.yaml")]
    assert history_format.file_name("a/EVAL.yaml") not in files.store(
        results.run(ran(sample()), path="b/EVAL.yaml"), time=T2
    )
    assert files[history_format.file_name("a/EVAL.yaml")] == before
    assert [
        line.split(" | ")[0] for line in files["README.md"].splitlines() if line.startswith("| `")
    ] == [
        "| `a/EVAL.yaml`",
        "| `b/EVAL.yaml`",
    ]


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"version":1,"suites":{"x":1}}',
        '{"version":2,"suites":{}}',
        "[" * 100_000,
    ],
)
def test_update__makes_a_damaged_index_again_from_the_files(damage: str) -> None:
    files = Files()
    files.store(
        results.run(ran(sample()), path="a/EVAL.yaml"),
        results.run(ran(sample()), path="b/EVAL.yaml"),
    )
    index = json.loads(files["index.json"])
    files["index.json"] = damage
    files["suites/odd.json"] = "odd"
    files["suites/deep.json"] = '{"more":' + "[" * 100_000
    files["suites/list.json"] = "[]"
    files["suites/nobody.json"] = '{"suite":null}'
    files["suites/lost.json"] = files[history_format.file_name("a/EVAL.yaml")]
    files.store(results.run(ran(sample()), path="b/EVAL.yaml"), time=T2)
    assert json.loads(files["index.json"])["suites"].keys() == index["suites"].keys()


@pytest.mark.parametrize(
    ("entry", "believed"),
    [
        ({}, True),
        ({"commit": "a" * 64}, True),
        ({"more": 1}, False),
        ({"suite": None}, False),
        ({"samples": 1.0}, False),
        ({"answers": True}, False),
        ({"commit": "main"}, False),
        ({"commit": f"{C1}\n"}, False),
        ({"time": "yesterday"}, False),
        ({"time": f"{T1}\n"}, False),
        ({"time": "2026-02-31T00:00:00.000Z"}, False),
    ],
)
def test_index__is_believed_as_it_was_written_alone(entry: dict[str, Any], believed: bool) -> None:
    files, name = Files(), history_format.file_name("a/EVAL.yaml")
    files.store(results.run(ran(sample()), path="a/EVAL.yaml"))
    index = json.loads(files["index.json"])
    index["suites"][name] |= {"tests": 999, **entry}
    files["index.json"] = json.dumps(index)
    files.store(results.run(ran(sample()), path="b/EVAL.yaml"))
    assert json.loads(files["index.json"])["suites"][name]["tests"] == (999 if believed else 1)


@pytest.mark.parametrize("version", [{}, {"version": 1}])
def test_index__may_name_no_version(version: dict[str, int]) -> None:
    files, name = Files(), history_format.file_name("a/EVAL.yaml")
    files.store(results.run(ran(sample()), path="a/EVAL.yaml"))
    files["index.json"] = json.dumps(
        {**version, "suites": json.loads(files["index.json"])["suites"]}
    )
    files.store(results.run(ran(sample()), path="b/EVAL.yaml"))
    assert name not in files.looked


def test_update__of_what_is_no_commit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"String should match pattern"):
        Files().store(results.run(ran(sample())), commit="main")


def test_update__tells_of_damage_and_begins_anew() -> None:
    files, name = Files(), history_format.file_name(PATH)
    files.store(results.run(ran(sample())))
    files[name] = files[name].replace('"pass"', '"fail"')
    (*_, notice) = files.store(results.run(ran(sample())), commit=C2, time=T2)
    assert notice == (
        "The stored results of `evals/EVAL.yaml` were damaged (a verdict is `fail` with a score of 1): they start again with those of this run."
    )
    assert [one.commit for one in only(_read(files[name])).samples] == [C2]


def test_update__tells_of_answers_that_were_too_large() -> None:
    (*_, notice) = Files().store(results.run(ran(sample(answer="x" * 70_000))))
    assert (
        notice
        == "1 answer of `evals/EVAL.yaml` could not be stored to be scored again: more than 64 KiB, nested too deeply, or not JSON."
    )


def test_update__stores_text_that_is_no_unicode_and_escapes_paths() -> None:
    files, path = Files(), "evals/`|<b>@ada.yaml"
    found = replace(results.run(ran(sample(answer="half \ud800"), id="half \udfff")), path=path)
    files.store(found)
    assert "half ?" in files[history_format.file_name(path)]
    assert "<b>" not in files["README.md"]
    assert len([line for line in files["README.md"].splitlines() if line.count("|") == 7]) == 3
