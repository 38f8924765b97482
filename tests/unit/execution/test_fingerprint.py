"""What a result depends on: each change moves the digest that it belongs to, and no other."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.model.path_patterns import read_rule
from agentevals_action.model.result import Fingerprint
from agentevals_action.model.suite import Suite
from tests.support import suites
from tests.support.timing import processor_seconds

JUDGE = "import rules\nprint(1)\n"
FILES: dict[str, str] = {
    "evals/EVAL.yaml": """\
name: support
assert:
  - {name: tone, type: llm_judge, prompt: prompts/tone.md}
tests:
  - id: refund
    criteria: Names the window
    note: since May
    input:
      - {role: system, content: Be brief.}
      - role: user
        content:
          - {type: text, value: How long?}
          - {type: file, value: terms.txt}
          - {type: file, value: ../agent/prompt.md}
    expected_output: 30 days
    assert:
      - {type: contains, value: 30 days, required: true, weight: 2}
      - {name: check, type: code_judge, script: [python3, judges/check.py, --strict], config: {level: 1}}
""",
    "evals/prompts/tone.md": "Is it friendly? {{answer}}",
    "evals/judges/check.py": JUDGE,
    "evals/judges/rules.py": "LIMIT = 30\n",
    "evals/terms.txt": "Thirty days.",
    "agent/prompt.md": "You are kind.",
    "agent/run.py": "print('30 days')\n",
    "judge.py": "print('{}')\n",
    ".agentv/targets.yaml": """\
targets:
  - {name: default, provider: cli, command: [python3, ../agent/run.py], judge_target: judge}
  - {name: other, provider: cli, command: [python3, -V], judge_target: judge}
  - {name: judge, provider: mock, responses: [{pattern: a, response: b}]}
""",
}
WATCH = [read_rule("agent/**")]


def fingerprint(
    root: Path,
    changes: Mapping[str, str | None] | None = None,
    path: str = "evals/EVAL.yaml",
    watched: bool = True,
) -> Fingerprint:
    """Of the one test, after writing the files with these changes (None leaves one out)."""
    files = {name: text for name, text in {**FILES, **(changes or {})}.items() if text is not None}
    shutil.rmtree(root, ignore_errors=True)
    suite = suites.load_valid(suites.write(root, files), path)
    (test,) = suite.tests
    return Fingerprints(WATCH if watched else []).of(suite, test)


def moved(root: Path, changes: Mapping[str, str | None], path: str = "evals/EVAL.yaml") -> set[str]:
    """The parts whose digest the changes moved."""
    before, after = fingerprint(root), fingerprint(root, changes, path)
    return {
        part
        for part in ("question", "grading", "agent")
        if getattr(before, part) != getattr(after, part)
    }


def edited(old: str, new: str, path: str = "evals/EVAL.yaml") -> dict[str, str | None]:
    assert FILES[path].count(old) == 1
    return {path: FILES[path].replace(old, new)}


def test_of__the_same_in_two_folders(tmp_path: Path) -> None:
    one, other = (
        fingerprint(tmp_path / "one"),
        fingerprint(tmp_path / "a much longer name" / "other"),
    )
    assert one == other
    assert len({one.question, one.grading, one.agent}) == 3


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (edited("How long?", "How much?"), "question"),
        ({"evals/terms.txt": "Sixty days."}, "question"),
        (
            edited("{role: system, content: Be brief.}", "{role: assistant, content: Be brief.}"),
            "question agent",
        ),
        (edited("Be brief.", "Be long."), "agent"),
        ({"agent/prompt.md": "You are rude."}, "agent"),
        ({"agent/run.py": "print('60 days')\n"}, "agent"),
        (
            edited(
                "[python3, ../agent/run.py]", "[python3, -u, /agent/run.py]", ".agentv/targets.yaml"
            ),
            "agent",
        ),
        (edited("expected_output: 30 days", "expected_output: 60 days"), "grading"),
        (edited("Names the window", "Names it"), "grading"),
        (edited("since May", "since June"), "grading"),
        (edited("value: 30 days", "value: 60 days"), "grading"),
        (edited("required: true", "required: 0.5"), "grading"),
        (edited("required: true, ", ""), "grading"),
        (edited("weight: 2", "weight: 3"), "grading"),
        (edited("weight: 2", "weight: 2, negate: true"), "grading"),
        (edited("level: 1", "level: 2"), "grading"),
        (edited("--strict", "--lax"), "grading"),
        (edited("name: check", "name: verify"), "grading"),
        ({"evals/prompts/tone.md": "Is it rude? {{answer}}"}, "grading"),
        ({"evals/judges/check.py": JUDGE + "#\n"}, "grading"),
        ({"evals/judges/rules.py": "LIMIT = 60\n"}, "grading"),
        ({"evals/judges/rules.py": None}, "grading"),
        ({"evals/judges/more.py": ""}, "grading"),
        ({"evals/judges/rules.py": None, "evals/judges/laws.py": "LIMIT = 30\n"}, "grading"),
        (edited("response: b", "response: c", ".agentv/targets.yaml"), "grading"),
    ],
)
def test_of__a_change_moves_its_own_part(
    tmp_path: Path, change: Mapping[str, str | None], part: str
) -> None:
    assert moved(tmp_path / "r", change) == set(part.split())


@pytest.mark.parametrize(
    "change",
    [
        edited("name: support\n", "name: support\ndescription: about refunds\n\n"),
        edited(
            "id: refund\n", "id: refund\n    description: of shoes\n    metadata: {owner: ada}\n"
        ),
        edited(
            "{role: system, content: Be brief.}",
            "{role: system, content: [{type: text, value: Be brief.}]}",
        ),
        edited(
            "value: 30 days, required: true, weight: 2", "weight: 2, required: 0.8, value: 30 days"
        ),
        edited(
            "name: default, provider: cli", "provider: cli, name: default", ".agentv/targets.yaml"
        ),
        {"evals/beside.txt": "not named"},
    ],
)
def test_of__what_does_not_matter_moves_nothing(
    tmp_path: Path, change: Mapping[str, str | None]
) -> None:
    assert moved(tmp_path / "r", change) == set()


def test_of__moved_files_with_the_same_content_are_the_same(tmp_path: Path) -> None:
    text = FILES["evals/EVAL.yaml"]
    for old, new in (
        ("terms.txt", "texts/terms.txt"),
        ("prompts/tone.md", "../tone.md"),
        ("judges/check.py", "graders/judges/check.py"),
    ):
        text = text.replace(old, new)
    change: dict[str, str | None] = {
        "evals/EVAL.yaml": text,
        "evals/terms.txt": None,
        "evals/texts/terms.txt": FILES["evals/terms.txt"],
        "evals/prompts/tone.md": None,
        "tone.md": FILES["evals/prompts/tone.md"],
        "evals/judges/check.py": None,
        "evals/judges/rules.py": None,
        "evals/graders/judges/check.py": JUDGE,
        "evals/graders/judges/rules.py": FILES["evals/judges/rules.py"],
    }
    assert moved(tmp_path / "r", change) == set()


def test_of__a_renamed_suite_folder_is_the_same(tmp_path: Path) -> None:
    change: dict[str, str | None] = {name: None for name in FILES if name.startswith("evals/")}
    change |= {
        name.replace("evals/", "tests/"): text
        for name, text in FILES.items()
        if name.startswith("evals/")
    }
    assert moved(tmp_path / "r", change, "tests/EVAL.yaml") == set()


def test_of__a_renamed_target_is_the_same_and_another_is_not(tmp_path: Path) -> None:
    renamed = (
        FILES[".agentv/targets.yaml"]
        .replace("judge_target: judge", "judge_target: grader")
        .replace("name: judge,", "name: grader,")
    )
    assert moved(tmp_path / "r", {".agentv/targets.yaml": renamed}) == {
        "agent"
    }  # its definition names another judge, which is the same
    assert moved(
        tmp_path / "r", edited("name: support\n", "name: support\nexecution: {target: other}\n")
    ) == {"agent"}


def test_of__a_target_that_extends_another_follows_it(tmp_path: Path) -> None:
    extending = FILES[".agentv/targets.yaml"] + "  - {name: strict, extends: judge}\n"
    extending = extending.replace("judge_target: judge", "judge_target: strict")
    before = fingerprint(tmp_path / "r", {".agentv/targets.yaml": extending})
    after = fingerprint(
        tmp_path / "r", {".agentv/targets.yaml": extending.replace("response: b", "response: c")}
    )
    assert before.grading != after.grading


def test_of__variables_stay_unresolved(tmp_path: Path) -> None:
    change = edited("response: b", "response: '${{ SECRET }}'", ".agentv/targets.yaml")
    assert fingerprint(tmp_path / "one", change) == fingerprint(tmp_path / "two", change)


def test_of__without_watch_the_agents_prompt_is_part_of_the_question(tmp_path: Path) -> None:
    before = fingerprint(tmp_path / "r", watched=False)
    after = fingerprint(tmp_path / "r", {"agent/prompt.md": "You are rude."}, watched=False)
    assert before.question != after.question
    assert before.agent == after.agent


def test_of__a_judge_that_is_watched_still_grades(tmp_path: Path) -> None:
    rules = Fingerprints([read_rule("evals/judges/**")])
    found = []
    for text in (JUDGE, JUDGE + "#\n"):
        suite = suites.load_valid(
            suites.write(tmp_path, FILES | {"evals/judges/check.py": text}), "evals/EVAL.yaml"
        )
        found += [
            Fingerprints([read_rule("evals/judges/**")]).of(suite, test) for test in suite.tests
        ]
    assert found[0].grading != found[1].grading
    assert found[0].agent != found[1].agent
    assert found[0].question == found[1].question
    assert [rules.of(suite, test) for test in suite.tests] == found[1:]


def test_of__all_tracked_files_that_watch_names_are_the_agent(tmp_path: Path) -> None:
    suite = suites.load_valid(suites.write(tmp_path, FILES), "evals/EVAL.yaml")
    (test,) = suite.tests
    blobs = {"agent/lib/tools.py": "1" * 40, "agent/prompt.md": "2" * 40, "docs.md": "3" * 40}

    def of(changes: Mapping[str, str], rule: str = "agent/**") -> Fingerprint:
        tracked = {suite.root: {**blobs, **changes}}
        return Fingerprints([read_rule(rule)], tracked=tracked).of(suite, test)

    before = of({})
    assert of({"docs.md": "4" * 40}) == before
    for other in (
        of({"agent/lib/tools.py": "4" * 40}),
        of({"agent/more.py": "4" * 40}),
        of({}, "agent/* => evals/*"),
        of({}, "agent/l*/**"),
    ):
        assert other.agent != before.agent
        assert other.grading == before.grading
    assert of({}, "agent/* => other/*").question != before.question


def test_of__what_a_judge_imports_grades(tmp_path: Path) -> None:
    judge = {"evals/judges/check.py": "import helper\n"}

    def of(text: str, *rules: str) -> Fingerprint:
        files = {**FILES, **judge, "evals/helper.py": text}
        suite = suites.load_valid(suites.write(tmp_path, files), "evals/EVAL.yaml")
        (test,) = suite.tests
        return Fingerprints([read_rule(rule) for rule in rules]).of(suite, test)

    assert of("A = 1\n").grading != of("A = 2\n").grading
    assert of("A = 1\n", "evals/helper.py").grading == of("A = 2\n", "evals/helper.py").grading


def test_question_files__those_whose_change_makes_another_question(tmp_path: Path) -> None:
    suite = suites.load_valid(suites.write(tmp_path, FILES), "evals/EVAL.yaml")
    (test,) = suite.tests
    assert Fingerprints(WATCH).describe(suite).question_files(test) == ("evals/terms.txt",)
    assert Fingerprints().describe(suite).question_files(test) == (
        "evals/terms.txt",
        "agent/prompt.md",
    )


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

    one, many = with_answers(1), with_answers(1000)
    assert processor_seconds(lambda: prints(many)) < 10 * processor_seconds(lambda: prints(one))
    found = prints(many)
    assert len({print.agent for print in found}) == 1
    assert len({print.question for print in found}) == 1000


def test_of__the_judge_that_a_code_judge_may_ask_is_part_of_its_grading(tmp_path: Path) -> None:
    found = []
    for target in ("true", "false"):
        for reply in ("b", "c"):
            text = f"name: suite\ntests: [{{id: a, input: q, assert: [{{type: code_judge, script: [x], target: {target}}}]}}]\n"
            targets = FILES[".agentv/targets.yaml"].replace("response: b", f"response: {reply}")
            suite = suites.load_valid(
                suites.write(tmp_path, {"EVAL.yaml": text, ".agentv/targets.yaml": targets})
            )
            found += [Fingerprints().of(suite, test).grading for test in suite.tests]
    assert found[0] != found[1]
    assert found[2] == found[3]
