"""A skill with tests in `evals/evals.json`: its folder is the agent, its `evals/` is the question."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import agent_programs, command
from tests.support.repositories import Files, Repository

#: The agent answers with what its skill says, and with the fixture that the test brings.
SEES = "cat $(find . -name *.md -o -name *.csv); cat"
TARGETS = f"""\
targets:
  - {{name: default, provider: cli, command: [sh, -c, '{SEES}'], judge_target: judge}}
  - name: judge
    provider: mock
    responses:
      - {{pattern: '30 days', response: '{{"checks": [{{"id": "rubric-1", "satisfied": true}}]}}'}}
      - {{pattern: '.', response: '{{"checks": [{{"id": "rubric-1", "satisfied": false}}]}}'}}
"""
AGENT = {"name": "default", "provider": "cli", "judge_target": "judge"}
SKILL = """\
---
name: shop
description: Answers about refunds.
---
A refund takes 30 days.
"""


def evals(*tests: dict[str, Any], name: str = "shop") -> str:
    listed = [{"id": n, "prompt": "How long?", **test} for n, test in enumerate(tests, 1)]
    return json.dumps({"skill_name": name, "evals": listed}, indent=2)


ASSERTIONS = {"assertions": ["The period of the refund is stated."]}
FILES = "skills/shop/evals/files/orders.csv"
BASE: Files = {
    "skills/shop/SKILL.md": SKILL,
    "skills/shop/evals/evals.json": evals(ASSERTIONS),
    ".agentv/targets.yaml": TARGETS,
    ".gitignore": "/agentevals-report/\n*.log\n",
}


def reviewed(folder: Path, base: Files, change: Files, *options: str) -> command.Done:
    made = Repository.create(folder / "repository", {**BASE, **base})
    made.git("checkout", "--quiet", "-b", "change")
    made.commit("change", change)
    return command.run(made.path, "review", "--base", "main", *options)


#: A test that needs a file, and answers with its content.
NEEDS = {**ASSERTIONS, "files": ["data/orders.csv"], "prompt": "Read data/orders.csv."}
DATA = "skills/shop/evals/data/orders.csv"
VAGUE = SKILL.replace("30 days", "some time")
#: A suite whose agent reads the skill in the checkout, and not in a folder of its own.
CHECKOUT = """\
name: shop
execution: {target: reads}
tests: [{id: refund, input: How long?, assert: [{type: contains, value: 30 days}]}]
"""
READS = "  - {name: reads, provider: cli, command: [sh, -c, 'cat .claude/skills/*/*.md'], cwd: /}\n"
#: Two skills, and a suite that needs none of them.
TWO: Files = {
    "skills/other/SKILL.md": SKILL.replace("shop", "other"),
    "skills/other/evals/evals.json": evals(ASSERTIONS, name="other"),
    "EVAL.yaml": "name: own\ntests: [{id: a, input: hi, assert: [{type: contains, value: hi}]}]\n",
}

#: What main has besides, a change, the exit code and words of the review.
CHANGES: dict[str, tuple[Files, Files, int, str]] = {
    # The trap: an installed skill is no part of the question, or this would not be compared.
    "a skill that loses its words": ({}, {"skills/shop/SKILL.md": VAGUE}, 1, "1 test regressed"),
    "a skill that says it in other words": (
        {},
        {"skills/shop/SKILL.md": SKILL.replace("takes", "is paid within")},
        0,
        "changed: skills/shop/SKILL.md (skill)",
    ),
    "a skill that moves and changes its name": (
        {},
        {
            "skills/shop/SKILL.md": None,
            "skills/shop/evals/evals.json": None,
            "skills/store/SKILL.md": VAGUE.replace("shop", "store"),
            "skills/store/evals/evals.json": evals(ASSERTIONS),
        },
        1,
        "1 test regressed",
    ),
    "a file that the skill names": (
        {"skills/shop/references/refunds.md": "30 days\n", "skills/shop/SKILL.md": VAGUE},
        {"skills/shop/references/refunds.md": "some time\n"},
        1,
        "1 test regressed",
    ),
    "a fixture is another question": (
        {"skills/shop/evals/evals.json": evals(NEEDS), DATA: "30 days\n"},
        {DATA: "some time\n", "skills/shop/SKILL.md": VAGUE},
        0,
        "not compared",
    ),
    "a fixture that is the skill's own file": (
        {
            "skills/shop/evals/evals.json": evals({**NEEDS, "files": ["data/orders.csv"]}),
            "skills/shop/data/orders.csv": "30 days\n",
            "skills/shop/SKILL.md": VAGUE,
        },
        {"skills/shop/data/orders.csv": "some time\n"},
        1,
        "1 test regressed",
    ),
    "a fixture that is deleted": (
        {"skills/shop/evals/evals.json": evals(NEEDS), DATA: "30 days\n"},
        {DATA: None},
        3,
        "the test needs `data/orders.csv`, which the repository does not have",
    ),
    "a folder of fixtures that is deleted": (
        {
            "skills/shop/evals/evals.json": evals({**NEEDS, "files": ["data"]}),
            DATA: "30 days\n",
        },
        {DATA: None},
        3,
        "the test needs `data`, which the repository does not have",
    ),
    "a fixture that was missing": (
        {"skills/shop/evals/evals.json": evals(ASSERTIONS, NEEDS)},
        {DATA: "30 days\n"},
        0,
        "1 test is new",
    ),
    "a fixture that never was there": (
        {"skills/shop/evals/evals.json": evals(ASSERTIONS, NEEDS)},
        {"skills/shop/SKILL.md": SKILL + "Please.\n"},
        0,
        "1 test needs files that the repository does not have, and did not run",
    ),
    "another criterion scores both answers": (
        {"skills/shop/SKILL.md": VAGUE},
        {"skills/shop/evals/evals.json": evals({"assertions": ["Another."]})},
        0,
        "re-scored",
    ),
    "a skill that no test is about": (
        {"skills/other/SKILL.md": "---\nname: other\n---\n"},
        {"skills/other/SKILL.md": "---\nname: other\n---\nMore.\n"},
        0,
        "no test is about the changed `skills/other`: write `evals/evals.json` in it",
    ),
    "a skill that another suite may read in the checkout": (
        {
            ".claude/skills/other/SKILL.md": "30 days\n",
            ".agentv/targets.yaml": TARGETS + READS,
            "EVAL.yaml": CHECKOUT,
        },
        {".claude/skills/other/SKILL.md": "some time\n"},
        1,
        "1 test regressed",
    ),
    "a file that nothing is known about": (
        {"rules.txt": "1\n"},
        {"rules.txt": "2\n"},
        0,
        "no suite covers rules.txt",
    ),
    "one of two skills is deleted, and its tests stay": (
        TWO,
        {"skills/other/SKILL.md": None},
        2,
        "no SKILL.md belongs to these tests",
    ),
    "two skills are deleted, and their tests stay": (
        TWO,
        {"skills/shop/SKILL.md": None, "skills/other/SKILL.md": None},
        2,
        "2 errors",
    ),
    "the agent of two skills becomes a model": (
        TWO,
        {".agentv/targets.yaml": "- {name: default, provider: mock, response: hi}\n"},
        2,
        "2 errors",
    ),
    "a skill whose tests lose their SKILL.md": (
        {},
        {"skills/shop/SKILL.md": None},
        2,
        "there is no suite in this repository",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_review__a_change_of_a_skill_is_compared(tmp_path: Path, name: str) -> None:
    base, change, code, words = CHANGES[name]
    done = reviewed(tmp_path, base, change)
    assert (done.code, words in done.out + done.err) == (code, True), done.out + done.err


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("a skill that moves and changes its name", "no test is about"),
        ("a skill that no test is about", "no suite and no rule"),
    ],
)
def test_review__a_skill_without_tests_is_named_once_and_only_on_head(
    tmp_path: Path, name: str, absent: str
) -> None:
    base, change, _, _ = CHANGES[name]
    assert absent not in reviewed(tmp_path, base, change).out


def test_review__each_skill_has_its_own_suite(tmp_path: Path) -> None:
    other = SKILL.replace("shop", "other")
    base: Files = {
        "skills/other/SKILL.md": other,
        "skills/other/evals/evals.json": evals(ASSERTIONS, name="other"),
    }
    done = reviewed(tmp_path, base, {"skills/other/SKILL.md": other + "Please.\n"})
    assert done.code == 0, done.out + done.err
    assert "`skills/other`" in done.out
    assert "skills/shop" not in done.out


def test_reports__name_the_suite_of_a_skill_by_its_folder(tmp_path: Path) -> None:
    done = reviewed(tmp_path, TWO, {".agentv/targets.yaml": TARGETS + "\n"})
    assert done.code == 0, done.out + done.err
    assert "skills/other/evals/evals.json`" not in done.out
    report = tmp_path / "repository/agentevals-report"
    assert [
        (suite["path"], suite["label"])
        for suite in json.loads((report / "summary.json").read_text())["suites"]
    ] == [
        ("EVAL.yaml", "EVAL.yaml"),
        ("skills/other/evals/evals.json", "skills/other"),
        ("skills/shop/evals/evals.json", "skills/shop"),
    ]
    assert (
        '<testsuite name="skills/shop" file="skills/shop/evals/'
        in (report / "junit.xml").read_text()
    )
    page = (report / "report.html").read_text()
    assert '"names":["EVAL.yaml","skills/other","skills/shop"]' in page


def results(folder: Path, files: Files, *arguments: str) -> list[dict[str, Any]]:
    """The results of a run."""
    made = Repository.create(folder, {**BASE, **files})
    made.write({"skills/shop/notes.log": "30 days\n"})
    done = command.run(made.path, "run", *arguments)
    assert done.code in (0, 1), done.out + done.err
    rows = (made.path / "agentevals-report/results.jsonl").read_text().splitlines()
    return [json.loads(row) for row in rows]


def test_run__a_skill_is_installed_without_its_tests(tmp_path: Path) -> None:
    sees = "find . -type f | sort; echo more > skill.txt; cat"
    files: Files = {
        ".agentv/targets.yaml": TARGETS.replace(SEES, sees),
        "skills/shop/evals/evals.json": evals({**NEEDS, "prompt": "Read `in/orders.csv`."}),
        DATA: "1\n",
        "skills/shop/scripts/sum.sh": "true\n",
    }
    (row,) = results(tmp_path / "repository", files)
    installed = ("SKILL.md", "scripts/sum.sh")
    assert row["candidateAnswer"].splitlines() == [
        *(f"./.agents/skills/shop/{name}" for name in installed),
        *(f"./.claude/skills/shop/{name}" for name in installed),
        "./data/orders.csv",
        "./in/orders.csv",
        "Read `in/orders.csv`.",
    ]
    changes = row["samples"][0]["fileChanges"]
    assert "+more" in changes
    assert "SKILL.md" not in changes


def test_run__a_judge_sees_a_picture_that_the_agent_made(tmp_path: Path) -> None:
    draws = r"printf '\211PNG\r\n\032\n\000\000' > chart.png; echo done"
    met = json.dumps({"checks": [{"id": "rubric-1", "satisfied": True}]})
    judge = {"pattern": r"(?s)</rubric.*\nchart\.png\s*$", "response": met}
    targets = [
        {**AGENT, "command": ["sh", "-c", draws]},
        {"name": "judge", "provider": "mock", "responses": [judge]},
    ]
    (row,) = results(tmp_path / "repository", {".agentv/targets.yaml": json.dumps(targets)})
    assert row["verdict"] == "pass", row


def test_run__a_skill_for_the_user_alone_is_invoked(tmp_path: Path) -> None:
    tests = evals(ASSERTIONS, {**ASSERTIONS, "prompt": "/shop now"})
    files: Files = {
        "skills/shop/SKILL.md": MANUAL,
        "skills/shop/evals/evals.json": tests,
        ".agentv/targets.yaml": TARGETS.replace(SEES, "cat"),
    }
    rows = results(tmp_path / "repository", files)
    assert [row["candidateAnswer"] for row in rows] == ["/shop How long?", "/shop now"]
    assert [row["question"] for row in rows] == ["How long?", "/shop now"]


def test_run__a_suite_beside_the_tests_replaces_theirs(tmp_path: Path) -> None:
    suite = """\
name: shop-and-more
workspace: {skills: [..]}
tests: evals.json
assert: [{type: contains, value: refund}]
"""
    (row,) = results(tmp_path / "repository", {"skills/shop/evals/EVAL.yaml": suite})
    assert (row["dataset"], row["verdict"]) == ("shop-and-more", "pass")
    assert [each["type"] for each in row["evaluatorResults"]] == ["rubric", "contains"]


def test_run__a_target_that_works_in_no_folder_is_refused(tmp_path: Path) -> None:
    targets = "- {name: default, provider: http, url: 'http://localhost/', judge_target: judge}\n"
    judge = "- {name: judge, provider: mock, response: ok}\n"
    made = Repository.create(
        tmp_path / "repository",
        {**BASE, ".agentv/targets.yaml": targets + judge, ".agentevals.yaml": "skills: {}\n"},
    )
    done = command.run(made.path, "validate")
    assert done.code == 2
    assert "the target `default` works in no folder, so it finds no skill there" in done.out


def test_validate__what_cannot_be_installed_or_belongs_to_no_skill_is_said(tmp_path: Path) -> None:
    made = Repository.create(
        tmp_path / "repository",
        {**BASE, "evals/evals.json": evals({}, name="x"), "other/evals/evals.json": '{"evals": ['},
    )
    made.write({"skills/shop/shared.md": Path("../../missing.md")})
    done = command.run(made.path, "validate")
    assert done.code == 2
    assert "the link 'skills/shop/shared.md' of the skill leads to no file" in done.out
    for path in ("evals/evals.json", "other/evals/evals.json"):
        assert f" {path}:1:1: no SKILL.md belongs to these tests" in done.out + done.err


def test_review__a_skill_that_is_lost_below_a_plugin_is_an_error(tmp_path: Path) -> None:
    """A runner's suite has all files of the plugin's folder, and reads no tests of skills."""
    runner = "name: own, results: agentevals, suites: [plugin/suite.toml]"
    base = {
        "plugin/skills/pack/SKILL.md": SKILL,
        "plugin/skills/pack/evals/evals.json": evals(ASSERTIONS, name="pack"),
        "plugin/suite.toml": "x\n",
        ".agentevals.yaml": f"runners: [{{{runner}, command: [cp, '{{SUITE}}', '{{RESULTS}}']}}]\n",
    }
    done = reviewed(tmp_path, base, {"plugin/skills/pack/SKILL.md": None})
    assert done.code == 2
    assert "no SKILL.md belongs to these tests: they are not run" in done.out + done.err


WITH_SKILL = "---\nname: {}\n---\n"
#: Files, options of `.agentevals.yaml`, and the suites that are found.
PLACES: dict[str, tuple[Files, str, list[str]]] = {
    "hidden folders of agents": (
        {
            f".{agent}/skills/{agent}/{name}": evals(ASSERTIONS) if name[0] == "e" else "x\n"
            for agent in ("claude", "agents", "github", "codex", "gemini", "cursor", "other")
            for name in ("SKILL.md", "evals/evals.json")
        },
        "",
        [
            f".{agent}/skills/{agent}/evals/evals.json"
            for agent in ("agents", "claude", "codex", "cursor", "gemini", "github")
        ],
    ),
    "no copies of skill-creator": (
        {
            f"{folder}/{name}": evals(ASSERTIONS) if name[0] == "e" else "x\n"
            for folder in (
                "shop-workspace/x",
                "iteration-1",
                "outputs/x",
                "fixtures/x",
                "archive/x",
            )
            for name in ("SKILL.md", "evals/evals.json")
        },
        "",
        [],
    ),
    "a plugin with three skills": (
        {
            **{f"skills/{name}/SKILL.md": WITH_SKILL.format(name) for name in ("a", "b", "c")},
            "evals/evals.json": evals(ASSERTIONS, name="b"),
            "evals/trigger-eval.json": '[{"query": "a", "should_trigger": true}]',
        },
        "",
        ["evals/evals.json", "evals/trigger-eval.json"],
    ),
    "a skill at the root": (
        {"SKILL.md": WITH_SKILL.format("root"), "evals/evals.json": evals(ASSERTIONS)},
        "",
        ["evals/evals.json"],
    ),
    "lists of triggers": (
        {
            "skills/shop/evals/trigger-eval.json": '[{"query": "a", "should_trigger": true}]',
            "skills/shop/evals/eval_queries.json": '[{"query": "a", "should_trigger": true}]',
            "skills/shop/evals/other.json": "[]",
        },
        "",
        ["skills/shop/evals/eval_queries.json", "skills/shop/evals/trigger-eval.json"],
    ),
    "files of another tool, without a word": (
        {"evals/evals.json": '{"suites": [{"prompt": "hi"}]}'},
        "",
        [],
    ),
    "patterns of the user": (
        {"skills/new/SKILL.md": "x\n", "skills/new/evals/evals.json": evals(ASSERTIONS)},
        "skills: {suites: ['!**/new/**'], target: default}\n",
        [],
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_list__finds_tests_of_skills(tmp_path: Path, name: str) -> None:
    files, rules, found = PLACES[name]
    more: Files = {".agentevals.yaml": rules} if rules else {}
    made = Repository.create(tmp_path / "repository", {**BASE, **files, **more})
    done = command.run(made.path, "list", "--json")
    assert (done.code, done.err) == (0, "")
    paths = [entry["path"] for entry in json.loads(done.out)]
    assert paths == sorted([*found, "skills/shop/evals/evals.json"])


#: Targets, options, what the review says besides the suite of our own.
WITHOUT: dict[str, tuple[str, str, str]] = {
    "a model": ("- {name: default, provider: mock, response: hi}\n", "", "no agent answers"),
    "other names": ("- {name: x, provider: mock, response: hi}\n", "", "no agent answers"),
    "switched off": (TARGETS, "skills: {suites: []}\n", ""),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_review__no_repository_turns_red_by_skills(tmp_path: Path, name: str) -> None:
    targets, rules, words = WITHOUT[name]
    suite = "name: hi\nexecution: {target: x}\ntests: [{id: a, input: hi, criteria: x}]\n"
    suite = suite.replace("criteria: x", "assert: [{type: contains, value: hi}]")
    if "name: x" not in targets:
        targets += "- {name: x, provider: mock, response: hi}\n".rjust(
            44 if "targets:" in targets else 0
        )
    base: Files = {".agentv/targets.yaml": targets, "EVAL.yaml": suite}
    if rules:
        base = {**base, ".agentevals.yaml": rules}
    done = reviewed(tmp_path, base, {"skills/shop/SKILL.md": VAGUE, "EVAL.yaml": suite + "\n"})
    assert done.code == 0, done.out + done.err
    assert ("no agent answers these tests" in done.out + done.err) == bool(words), done.out
    made = Repository(tmp_path / "repository")
    made.write({"EVAL.yaml": None})
    alone = command.run(made.path, "run")
    assert alone.code == 2
    assert words in alone.err


def test_init__tests_of_skills_get_their_gate(tmp_path: Path) -> None:
    files = {path: text for path, text in BASE.items() if not path.startswith(".agentv")}
    made = Repository.create(tmp_path / "repository", files)
    done = command.run(made.path, "init")
    assert done.code == 0, done.out + done.err
    assert "created  .agentv/targets.yaml" in done.out
    assert "evals/EVAL.yaml" not in done.out
    workflow = (made.path / ".github/workflows/evals.yml").read_text()
    assert "npm install -g @anthropic-ai/claude-code" in workflow
    assert "ANTHROPIC_API_KEY: ${{ secrets.ANTHROPIC_API_KEY }}" in workflow
    made.commit("gate")
    checked = command.run(made.path, "validate")
    assert checked.code == 0, checked.out + checked.err
    assert "skills/shop/evals/evals.json: valid, 1 test" in checked.out


def test_init__the_program_of_an_agent_is_found_from_the_folder_of_a_test(tmp_path: Path) -> None:
    made = Repository.create(tmp_path / "repository", {**BASE, "agent.sh": f"{SEES}\n"})
    made.write({".agentv/targets.yaml": None})
    done = command.run(made.path, "init", "--command", "sh agent.sh")
    assert done.code == 0, done.out + done.err
    targets = (made.path / ".agentv/targets.yaml").read_text()
    assert 'command: ["sh", "../../../agent.sh"]' in targets
    _, start, judge = TARGETS.partition("  - name: judge")
    made.write({".agentv/targets.yaml": targets.partition("  - {name: judge")[0] + start + judge})
    ran = command.run(made.path, "run")
    assert ran.code == 0, ran.out + ran.err


def test_init__a_program_that_no_path_finds_from_all_tests_is_refused(tmp_path: Path) -> None:
    deeper: Files = {"a/b/c/SKILL.md": SKILL, "a/b/c/evals/evals.json": evals(ASSERTIONS)}
    made = Repository.create(tmp_path / "repository", {**BASE, **deeper, "agent.sh": ""})
    done = command.run(made.path, "init", "--command", "sh agent.sh")
    assert done.code == 2
    assert "name a program that is on the PATH, or an absolute path" in done.err


#: The folder in which each agent finds skills, and what stands before the name of one that a
#: prompt invokes.
AGENTS = {
    "claude": (".claude", "/"),
    "codex": (".agents", "$"),
    "copilot": (".agents", ""),
    "gemini": (".agents", "/"),
}
MANUAL = SKILL.replace("---\nA", "disable-model-invocation: true\n---\nA")


def of_agent(folder: Path, agent: str, skill: str) -> Files:
    """A skill whose agent writes its files and its prompt into `folder`, and answers."""
    (folder / "stream").write_text(agent_programs.answer_stream(agent, "30 days"))
    script = f"find . -type f > {folder}/files; cat > {folder}/prompt; cat {folder}/stream"
    target = {"name": "default", "provider": f"{agent}-cli", "judge_target": "judge"}
    judge = {"name": "judge", "provider": "mock", "response": '{"score": 1, "reasoning": ""}'}
    targets = [{**target, "command": ["sh", "-c", script]}, judge]
    return {
        ".agentv/targets.yaml": json.dumps(targets),
        "skills/shop/SKILL.md": skill,
        "skills/shop/evals/evals.json": evals({"expected_output": "The period."}),
    }


@pytest.mark.parametrize("agent", AGENTS)
def test_run__each_agent_gets_the_skill_where_it_looks(tmp_path: Path, agent: str) -> None:
    (row,) = results(tmp_path / "repository", of_agent(tmp_path, agent, SKILL))
    assert (row["verdict"], row["candidateAnswer"]) == ("pass", "30 days")
    files = (tmp_path / "files").read_text().splitlines()
    assert files == [f"./{AGENTS[agent][0]}/skills/shop/SKILL.md"]
    assert (tmp_path / "prompt").read_text() == "How long?"


@pytest.mark.parametrize("agent", [name for name, (_, mark) in AGENTS.items() if mark])
def test_run__each_agent_is_asked_as_it_invokes_a_skill(tmp_path: Path, agent: str) -> None:
    results(tmp_path / "repository", of_agent(tmp_path, agent, MANUAL))
    assert (tmp_path / "prompt").read_text() == f"{AGENTS[agent][1]}shop How long?"


def test_run__a_skill_that_no_prompt_invokes_is_refused(tmp_path: Path) -> None:
    """Head and base would both answer without it."""
    files = {**BASE, **of_agent(tmp_path, "copilot", MANUAL)}
    done = command.run(Repository.create(tmp_path / "repository", files).path, "run")
    assert done.code == 2
    assert "the target `default` cannot invoke the skill `shop`" in done.out + done.err
