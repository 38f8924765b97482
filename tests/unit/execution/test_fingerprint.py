"""What a result depends on (`data/fingerprints.yaml`): each change moves the digest that it belongs
to, and no other."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.execution.suite_description import TrackedFiles
from agentevals_action.model.path_patterns import read_rule
from agentevals_action.model.result import Fingerprint
from agentevals_action.model.suite import Suite
from tests.support import data, suites
from tests.support.timing import processor_seconds

DATA = data.read("fingerprints.yaml")
FILES: Mapping[str, Mapping[str, str]] = DATA["files"]
CASES = [(name, case) for name, cases in DATA["moved"].items() for case in cases]
WATCH = ("agent/**", "**/AGENTS.md")
PATH = "evals/EVAL.yaml"


def load(root: Path, files: Mapping[str, str], path: str = PATH) -> Suite:
    shutil.rmtree(root, ignore_errors=True)
    return suites.load_valid(suites.write(root, files), path)


def fingerprint(
    root: Path, files: Mapping[str, str], path: str = PATH, watch: Sequence[str] = WATCH
) -> Fingerprint:
    """Of the one test of a suite."""
    suite = load(root, files, path)
    (test,) = suite.tests
    return Fingerprints(list(map(read_rule, watch))).of(suite, test)


def test_of__the_same_in_two_folders(tmp_path: Path) -> None:
    first = fingerprint(tmp_path / "one", FILES["messages"])
    assert first == fingerprint(tmp_path / "a much longer name/other", FILES["messages"])
    assert len({first.question, first.grading, first.agent}) == 3


def test_of__a_variant_without_the_skill_does_not_depend_on_its_text(tmp_path: Path) -> None:
    tests = "tests: [{id: a, input: hi, assert: [{type: equals, value: x}]}]\n"
    files = {
        PATH: f"name: suite\nworkspace: {{skills: [../shop]}}\nvariants: [without_skill]\n{tests}",
        "shop/SKILL.md": "---\nname: shop\n---\n30 days\n",
        ".agentv/targets.yaml": suites.TARGETS,
    }
    found = []
    for text in ("30 days", "some time"):
        suite = load(tmp_path / "r", suites.change(files, {"shop/SKILL.md": {"30 days": text}}))
        tracked = {suite.root: TrackedFiles({"shop/SKILL.md": text}, ["shop/SKILL.md"])}
        fingerprints = Fingerprints(tracked=tracked)
        found.append([fingerprints.of(each, each.tests[0]) for each in (suite, *suite.arms)])
    (declared, arm), (changed, arm_after) = found
    assert (arm == arm_after, declared == changed, declared.agent == arm.agent) == (
        True,
        False,
        False,
    )
    assert (declared.question, declared.grading) == (arm.question, arm.grading)


@pytest.mark.parametrize(("name", "case"), CASES)
def test_of__a_change_moves_its_own_parts(
    tmp_path: Path, name: str, case: Mapping[str, Any]
) -> None:
    files, watch = suites.change(FILES[name], case.get("before", {})), case.get("watch", WATCH)
    before, after = (
        fingerprint(tmp_path / "r", each, watch=watch)
        for each in (files, suites.change(files, case["change"]))
    )
    parts = ("question", "grading", "agent")
    moved = {part for part in parts if getattr(before, part) != getattr(after, part)}
    assert moved == set(case["moved"].split())


@pytest.mark.parametrize("name", ["messages", "workspace"])
def test_of__a_renamed_suite_folder_is_the_same(tmp_path: Path, name: str) -> None:
    files = FILES[name]
    renamed = {path.replace("evals/", "tests/"): text for path, text in files.items()}
    before = fingerprint(tmp_path / "r", files)
    assert fingerprint(tmp_path / "r", renamed, "tests/EVAL.yaml") == before


def test_of__another_value_of_a_variable_is_another_target_and_another_key_is_not(
    tmp_path: Path,
) -> None:
    change = {".agentv/targets.yaml": {"response: b": "response: '${{ MODEL }} ${{ API_KEY }}'"}}
    suite = load(tmp_path, suites.change(FILES["messages"], change))

    def grading(**variables: str) -> str:
        return Fingerprints(variables=lambda *_: variables).of(suite, suite.tests[0]).grading

    known = grading(MODEL="a", API_KEY="k")
    assert grading(MODEL="a", API_KEY="another") == known
    assert grading(MODEL="b", API_KEY="k") != known


def test_of__all_tracked_files_that_watch_names_are_the_agent(tmp_path: Path) -> None:
    suite = load(tmp_path, FILES["messages"])
    (test,) = suite.tests
    names = ("agent/lib/tools.py", "agent/prompt.md", "docs.md", "more.toml")
    blobs = {name: str(number) * 40 for number, name in enumerate(names)}

    def of(changes: Mapping[str, str], rule: str = "agent/**") -> Fingerprint:
        ids = {**blobs, **changes}
        tracked = {suite.root: TrackedFiles(ids, ids.keys() - {"docs.md"})}
        return Fingerprints([read_rule(rule)], tracked=tracked).of(suite, test)

    before = of({})
    assert of({"docs.md": "4" * 40}) == of({"more.toml": "4" * 40}) == before
    for other in (
        of({"agent/lib/tools.py": "4" * 40}),
        of({"agent/more.py": "4" * 40}),
        of({}, "agent/* => evals/*"),
        of({}, "agent/l*/**"),
    ):
        assert other.agent != before.agent
        assert other.grading == before.grading
    assert of({}, "agent/* => other/*").question != before.question
    # Rules that only exclude mean all that no suite covers but these.
    outside = of({}, "!agent/lib/**")
    assert of({"agent/lib/tools.py": "4" * 40, "docs.md": "4" * 40}, "!agent/lib/**") == outside
    assert of({"agent/more.py": "4" * 40}, "!agent/lib/**").agent != outside.agent


@pytest.mark.parametrize(
    ("name", "watch", "expected"),
    [
        ("messages", WATCH, "terms.txt"),
        ("messages", (), "terms.txt ../agent/prompt.md"),
        ("workspace", WATCH, "app.git/HEAD app.git/objects/x each.sh setup.sh start/app.py"),
    ],
)
def test_question_files__those_whose_change_makes_another_question(
    tmp_path: Path, name: str, watch: Sequence[str], expected: str
) -> None:
    suite = load(tmp_path, FILES[name])
    (test,) = suite.tests
    described = Fingerprints(list(map(read_rule, watch))).describe(suite)
    files_of_suite = {file.path for file in suite.files}
    found = described.question_files(files_of_suite)[test.id]
    assert [os.path.relpath(path, "evals") for path in found] == expected.split()


@pytest.mark.slow
def test_of__a_long_list_of_answers_is_read_once_for_a_suite(tmp_path: Path) -> None:
    """1,000 tests against a mock of 1,000 answers: written out for each test, the list would take a
    gigabyte, and hundreds of times as long as a list of one answer."""
    tests = "".join(
        f"  - {{id: t{number}, input: p{number}, assert: [{{type: contains, value: x}}]}}\n"
        for number in range(1000)
    )

    def with_answers(count: int) -> Suite:
        answers = "".join(
            f"      - {{pattern: p{number}, response: {'x' * 1000}}}\n" for number in range(count)
        )
        targets = f"targets:\n  - name: default\n    provider: mock\n    responses:\n{answers}"
        files = {"EVAL.yaml": f"name: many\ntests:\n{tests}", ".agentv/targets.yaml": targets}
        return suites.load_valid(suites.write(tmp_path / str(count), files))

    def prints(suite: Suite) -> list[Fingerprint]:
        known = Fingerprints()
        return [known.of(suite, test) for test in suite.tests]

    few, many = with_answers(1), with_answers(1000)
    assert processor_seconds(lambda: prints(many)) < 10 * processor_seconds(lambda: prints(few))
    found = prints(many)
    assert len({print.agent for print in found}) == 1
    assert len({print.question for print in found}) == 1000


JUDGED = """\
assert: [{type: rubric, name: shared, rubrics: [polite]}]
tests:
  - {id: a, input: hi, criteria: greets, assert: [{type: llm_judge, name: judge}]}
"""


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        ("criteria: greets", "criteria: says hello", []),
        ("type: llm_judge", "type: llm_judge, weight: 2", []),
        ("type: llm_judge", "type: llm_judge, temperature: 0.5", ["judge"]),
        ("type: llm_judge", "type: llm_judge, prompt: 'Score {{answer}}'", ["judge"]),
        ("type: llm_judge", "type: llm_judge, required: true", []),
        ("type: llm_judge", "type: llm_judge, required: 0.5", ["judge"]),
        ("rubrics: [polite]", "rubrics: [kind]", ["shared"]),
        ("hi", "hello", []),
    ],
)
def test_judge_key__follows_how_it_judges(
    tmp_path: Path, before: str, after: str, moved: Sequence[str]
) -> None:
    found = []
    for text in (JUDGED, JUDGED.replace(before, after)):
        suite = load(tmp_path, {PATH: text, ".agentv/targets.yaml": suites.TARGETS})
        (test,) = suite.tests
        keys = {each.name: Fingerprints().judge_key(suite, test, each) for each in test.evaluators}
        found.append(keys)
    assert [name for name in found[0] if found[0][name] != found[1][name]] == moved
    assert len({*found[0].values()}) == 2
