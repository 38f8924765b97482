"""What a result depends on: each change moves the digest that it belongs to, and no other."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.execution.suite_description import TrackedFiles
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
WATCH = ("agent/**", "**/AGENTS.md")
PATH = "evals/EVAL.yaml"


Changes = Mapping[str, str | None]
#: A suite with a workspace.
WORKSPACE: dict[str, str] = {
    ".agentv/targets.yaml": suites.TARGETS,
    "evals/EVAL.yaml": """\
name: suite
workspace:
  template: start
  repos: [{path: app, repo: ./app.git, commit: v1}]
  hooks:
    before_all: {command: [sh, setup.sh]}
    before_each: {command: [sh, each.sh]}
    after_each: {command: [sh, tidy.sh], reset: fast}
    after_all: {command: [sh, down.sh]}
tests:
  - {id: a, input: q, assert: [{type: contains, value: x}]}
""",
    "evals/start/app.py": "1\n",
    "evals/start/AGENTS.md": "Be brief.\n",
    "evals/app.git/HEAD": "ref: refs/heads/main\n",
    "evals/app.git/objects/x": "x",
    **dict.fromkeys((f"evals/{name}.sh" for name in ("setup", "each", "tidy", "down")), "true\n"),
}


def changed(root: Path, changes: Changes, files: Mapping[str, str], path: str = PATH) -> Suite:
    """The suite after writing the files with these changes (None leaves one out)."""
    shutil.rmtree(root, ignore_errors=True)
    written = {name: text for name, text in {**files, **changes}.items() if text is not None}
    return suites.load_valid(suites.write(root, written), path)


def fingerprint(
    root: Path,
    changes: Changes | None = None,
    path: str = PATH,
    *,
    watch: Sequence[str] = WATCH,
    files: Mapping[str, str] = FILES,
) -> Fingerprint:
    """Of the one test, with these changes of the files."""
    suite = changed(root, changes or {}, files, path)
    (test,) = suite.tests
    return Fingerprints(list(map(read_rule, watch))).of(suite, test)


def moved(
    root: Path, changes: Changes, path: str = PATH, files: Mapping[str, str] = FILES
) -> set[str]:
    """The parts whose digest the changes moved."""
    before, after = fingerprint(root, files=files), fingerprint(root, changes, path, files=files)
    parts = ("question", "grading", "agent")
    return {part for part in parts if getattr(before, part) != getattr(after, part)}


def edited(
    old: str, new: str, path: str = PATH, files: Mapping[str, str] = FILES
) -> dict[str, str | None]:
    assert files[path].count(old) == 1
    return {path: files[path].replace(old, new)}


def test_of__the_same_in_two_folders(tmp_path: Path) -> None:
    first = fingerprint(tmp_path / "one")
    assert first == fingerprint(tmp_path / "a much longer name" / "other")
    assert len({first.question, first.grading, first.agent}) == 3


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
def test_of__a_change_moves_its_own_part(tmp_path: Path, change: Changes, part: str) -> None:
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
def test_of__what_does_not_matter_moves_nothing(tmp_path: Path, change: Changes) -> None:
    assert moved(tmp_path / "r", change) == set()


STARTED = {
    ".agentv/targets.yaml": """\
targets:
  - name: default
    provider: http
    url: http://127.0.0.1:{PORT}/
    start: python3 service.py {PORT}
    cwd: /
""",
    "service.py": "1\n",
    "evals/EVAL.yaml": "name: suite\ntests: [{id: a, input: q, assert: [{type: contains, value: x}]}]\n",
}


@pytest.mark.parametrize(
    "change",
    [
        {"service.py": "2\n"},
        edited("cwd: /", "cwd: /\n    ready: /health", ".agentv/targets.yaml", STARTED),
        edited("python3 service", "python3 -u service", ".agentv/targets.yaml", STARTED),
    ],
)
def test_of__another_start_of_a_service_is_another_agent(tmp_path: Path, change: Changes) -> None:
    assert moved(tmp_path / "r", change, files=STARTED) == {"agent"}


def of_workspace(old: str, new: str) -> dict[str, str | None]:
    return edited(old, new, files=WORKSPACE)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"evals/start/app.py": "2\n"}, "question"),
        ({"evals/start/more.py": ""}, "question"),
        ({"evals/start/app.py": None, "evals/start/main.py": "1\n"}, "question"),
        ({"evals/app.git/HEAD": "ref: refs/heads/topic\n"}, "question"),
        ({"evals/setup.sh": "false\n"}, "question"),
        ({"evals/each.sh": "false\n"}, "question"),
        (of_workspace("commit: v1", "commit: v2"), "question"),
        (of_workspace("path: app,", "path: other,"), "question"),
        (of_workspace("[sh, setup.sh]", "[bash, setup.sh]"), "question"),
        (of_workspace("reset: fast", "reset: strict"), "question"),
        (of_workspace("template: start", "template: start\n  isolation: per_test"), "question"),
        ({"evals/start/AGENTS.md": "Be long.\n"}, "agent"),
        ({"evals/tidy.sh": "false\n"}, ""),
        ({"evals/down.sh": "false\n"}, ""),
        (of_workspace("[sh, down.sh]", "[sh, down.sh, x]"), ""),
    ],
)
def test_of__a_change_of_a_workspace(tmp_path: Path, change: Changes, part: str) -> None:
    assert moved(tmp_path / "r", change, files=WORKSPACE) == set(part.split())


def test_of__an_empty_workspace_is_another_question(tmp_path: Path) -> None:
    start = WORKSPACE[PATH].partition("workspace:\n")[2].partition("tests:")[0]
    none = fingerprint(tmp_path, of_workspace(f"workspace:\n{start}", ""), files=WORKSPACE)
    empty = of_workspace(f"workspace:\n{start}", "workspace: {}\n")
    assert none.question != fingerprint(tmp_path, empty, files=WORKSPACE).question


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


@pytest.mark.parametrize("files", [FILES, WORKSPACE], ids=["messages", "workspace"])
def test_of__a_renamed_suite_folder_is_the_same(tmp_path: Path, files: Mapping[str, str]) -> None:
    own = [name for name in files if name.startswith("evals/")]
    change: dict[str, str | None] = dict.fromkeys(own)
    change |= {name.replace("evals/", "tests/"): files[name] for name in own}
    assert moved(tmp_path / "r", change, "tests/EVAL.yaml", files) == set()


def test_of__a_renamed_target_is_the_same_and_another_is_not(tmp_path: Path) -> None:
    targets = FILES[".agentv/targets.yaml"]
    renamed = targets.replace("judge_target: judge", "judge_target: grader")
    change = {".agentv/targets.yaml": renamed.replace("name: judge,", "name: grader,")}
    # The definition of the agent names another judge, which is the same.
    assert moved(tmp_path / "r", change) == {"agent"}
    other = edited("name: support\n", "name: support\nexecution: {target: other}\n")
    assert moved(tmp_path / "r", other) == {"agent"}


def test_of__a_target_that_extends_another_follows_it(tmp_path: Path) -> None:
    targets = FILES[".agentv/targets.yaml"] + "  - {name: strict, extends: judge}\n"
    targets = targets.replace("judge_target: judge", "judge_target: strict")
    changed = targets.replace("response: b", "response: c")
    before, after = (
        fingerprint(tmp_path / "r", {".agentv/targets.yaml": text}) for text in (targets, changed)
    )
    assert before.grading != after.grading


def test_of__variables_stay_unresolved(tmp_path: Path) -> None:
    change = edited("response: b", "response: '${{ SECRET }}'", ".agentv/targets.yaml")
    assert fingerprint(tmp_path / "one", change) == fingerprint(tmp_path / "two", change)


def test_of__without_watch_the_agents_prompt_is_part_of_the_question(tmp_path: Path) -> None:
    before = fingerprint(tmp_path / "r", watch=())
    after = fingerprint(tmp_path / "r", {"agent/prompt.md": "You are rude."}, watch=())
    assert before.question != after.question
    assert before.agent == after.agent


def test_of__a_judge_that_is_watched_still_grades(tmp_path: Path) -> None:
    watch = ("evals/judges/**",)
    before = fingerprint(tmp_path, watch=watch)
    after = fingerprint(tmp_path, {"evals/judges/check.py": JUDGE + "#\n"}, watch=watch)
    assert before.grading != after.grading
    assert before.agent != after.agent
    assert before.question == after.question


def test_of__all_tracked_files_that_watch_names_are_the_agent(tmp_path: Path) -> None:
    suite = changed(tmp_path, {}, FILES)
    (test,) = suite.tests
    blobs = {"agent/lib/tools.py": "1" * 40, "agent/prompt.md": "2" * 40, "docs.md": "3" * 40}

    def of(changes: Mapping[str, str], rule: str = "agent/**") -> Fingerprint:
        ids = {**blobs, **changes}
        tracked = {suite.root: TrackedFiles(ids, ids.keys() - {"docs.md"})}
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
    # Rules that only exclude mean all that no suite covers but these.
    outside = of({}, "!agent/lib/**")
    assert of({"agent/lib/tools.py": "4" * 40, "docs.md": "4" * 40}, "!agent/lib/**") == outside
    assert of({"agent/more.py": "4" * 40}, "!agent/lib/**").agent != outside.agent


def test_of__what_a_judge_imports_grades(tmp_path: Path) -> None:
    def grading(text: str, *watch: str) -> str:
        changes = {"evals/judges/check.py": "import helper\n", "evals/helper.py": text}
        return fingerprint(tmp_path, changes, watch=watch).grading

    assert grading("A = 1\n") != grading("A = 2\n")
    assert grading("A = 1\n", "evals/helper.py") == grading("A = 2\n", "evals/helper.py")


@pytest.mark.parametrize(
    ("files", "watch", "expected"),
    [
        (FILES, WATCH, "terms.txt"),
        (FILES, (), "terms.txt ../agent/prompt.md"),
        (WORKSPACE, WATCH, "app.git/HEAD app.git/objects/x each.sh setup.sh start/app.py"),
    ],
)
def test_question_files__those_whose_change_makes_another_question(
    tmp_path: Path, files: Mapping[str, str], watch: Sequence[str], expected: str
) -> None:
    suite = changed(tmp_path, {}, files)
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


@pytest.mark.parametrize(("target", "grades"), [("true", True), ("false", False)])
def test_of__the_judge_that_a_code_judge_may_ask(tmp_path: Path, target: str, grades: bool) -> None:
    files = {
        "EVAL.yaml": "name: suite\ntests: [{id: a, input: q, "
        f"assert: [{{type: code_judge, script: [x], target: {target}}}]}}]\n",
        ".agentv/targets.yaml": FILES[".agentv/targets.yaml"],
    }
    answers_otherwise = edited("response: b", "response: c", ".agentv/targets.yaml")
    before, after = (
        fingerprint(tmp_path, change, "EVAL.yaml", files=files)
        for change in ({}, answers_otherwise)
    )
    assert (before.grading != after.grading) is grades
