"""A change of a file that no suite names: it may be the agent's, so it runs all suites."""

from pathlib import Path

import pytest

from tests.support import command
from tests.support.repositories import Files, Repository

SUITE = """\
name: shop
tests:
  - {id: refund, input: How long?, assert: [{type: contains, value: 30 days}]}
"""
#: The program of an agent names its files in ways that only it understands.
BASE: Files = {
    "evals/EVAL.yaml": SUITE,
    ".agentv/targets.yaml": "- {name: default, provider: cli, command: [sh, agent.sh], cwd: /}\n",
    "agent.sh": 'folder=prompts; cat "$folder"/*\n',
    "prompts/system.md": "Within 30 days.\n",
    ".gitignore": "/agentevals-report/\n",
}
PACKAGE = "import importlib\nprint(importlib.import_module('.'.join(['shop', 'rules'])).TEXT)\n"
POLICY = "folder=policy; cat docs/$folder/refunds.md\n"
OTHER = "name: other\ntests: [{id: b, input: x, assert: [{type: regex, value: .}]}]\n"
QUESTION = "input: [{role: user, content: [{type: file, value: /prompts/system.md}]}]"
PYTEST = "runners: [{name: pytest, results: junit, suites: ['prompts/test_*.py']}]\n"
#: What main has besides, and a change that breaks the agent.
BREAKS: dict[str, tuple[Files, Files]] = {
    "a prompt in Markdown": ({}, {"prompts/system.md": "Never.\n"}),
    "a prompt in YAML": (
        {"agent.sh": "cat config/*\n", "config/prompts.yaml": "text: 30 days\n"},
        {"config/prompts.yaml": "text: never\n"},
    ),
    "a module that is imported by a computed name": (
        {
            "agent.sh": "python3 -S -m shop\n",
            "shop/__init__.py": "",
            "shop/__main__.py": PACKAGE,
            "shop/rules.py": "TEXT = '30 days'\n",
        },
        {"shop/rules.py": "TEXT = 'never'\n"},
    ),
    "documentation that the agent reads": (
        {"agent.sh": POLICY, "docs/policy/refunds.md": "30 days\n"},
        {"docs/policy/refunds.md": "never\n"},
    ),
    "the README that the agent reads": (
        {"agent.sh": "cat README.md\n", "README.md": "30 days\n"},
        {"README.md": "never\n"},
    ),
    "instructions of a coding agent": (
        {"agent.sh": "cat .git*/copilot*\n", ".github/copilot-instructions.md": "30 days\n"},
        {".github/copilot-instructions.md": "never\n"},
    ),
    "a prompt that was deleted": (
        {"prompts/more.md": "Or longer.\n", "agent.sh": "cat prompts/more.md && cat prompts/s*\n"},
        {"prompts/more.md": None, "agent.sh": "cat prompts/s* | head -c 3\n"},
    ),
    "a prompt, and a rule that would hide it": (
        {},
        {"prompts/system.md": "Never.\n", ".agentevals.yaml": "watch: ['!prompts/**']\n"},
    ),
    "a prompt, and rules that name other files": (
        {},
        {"prompts/system.md": "Never.\n", ".agentevals.yaml": "watch: ['src/**']\n"},
    ),
    "a prompt that a rule named": (
        {".agentevals.yaml": "watch: ['prompts/**']\n"},
        {"prompts/system.md": "Never.\n", ".agentevals.yaml": None},
    ),
    "a prompt, and rules that match no file": (
        {".agentevals.yaml": "watch: ['source/**']\n"},
        {"prompts/system.md": "Never.\n"},
    ),
    "a prompt, and rules for another suite": (
        {"b/EVAL.yaml": OTHER, ".agentevals.yaml": "watch: ['b/** => b/**']\n"},
        {"prompts/system.md": "Never.\n"},
    ),
    "the target of a symbolic link": (
        {
            ".agentevals.yaml": "watch: ['now/**']\n",
            "agent.sh": "cat now/*\n",
            "now": Path("v1"),
            "v1/a.md": "30 days\n",
        },
        {"v1/a.md": "never\n"},
    ),
    "documentation to which a symbolic link leads": (
        {"agent.sh": "cat CLAUDE.md\n", "CLAUDE.md": Path("README.md"), "README.md": "30 days\n"},
        {"README.md": "never\n"},
    ),
    "another target of a symbolic link to a folder": (
        {
            ".agentevals.yaml": "watch: ['now/*.md']\n",
            "agent.sh": "cat now/*\n",
            "now": Path("v1"),
            "v1/a.md": "30 days\n",
            "v2/a.md": "never\n",
        },
        {"now": Path("v2")},
    ),
    "another target of a symbolic link to the program": (
        {"agent.sh": Path("v1.sh"), "v1.sh": "echo 30 days\n", "v2.sh": "echo never\n"},
        {"agent.sh": Path("v2.sh")},
    ),
    "a file of another suite's question": (
        {"b/EVAL.yaml": OTHER.replace("input: x", QUESTION)},
        {"prompts/system.md": "Never.\n"},
    ),
    "a file in the folder of a suite of pytest": (
        {".agentevals.yaml": PYTEST, "prompts/test_b.py": "def test_b(): pass\n"},
        {"prompts/system.md": "Never.\n"},
    ),
    "a package that only the suite of another package names": (
        {
            "agent.sh": "cd packages/a && PYTHONPATH=../b/src python3 -S -m a\n",
            "packages/a/a/__main__.py": "from b.rules import TEXT\nprint(TEXT)\n",
            "packages/b/src/b/__main__.py": "import b.rules\nprint('b')\n",
            "packages/b/src/b/rules.py": "TEXT = '30 days'\n",
            "packages/b/EVAL.yaml": f"{OTHER}execution: {{target: b}}\n",
            "packages/b/.agentv/targets.yaml": "- {name: b, provider: cli, cwd: /packages/b/src, "
            "command: [python3, -S, -m, b]}\n",
        },
        {"packages/b/src/b/rules.py": "TEXT = 'never'\n"},
    ),
    "a file of an agent whose suite was deleted": (
        {
            "agent.sh": "name=a; cat $name.sh\n",
            "a.sh": "# 30 days\n",
            "b/EVAL.yaml": f"{OTHER}execution: {{target: b}}\n",
            "b/.agentv/targets.yaml": "- {name: b, provider: cli, command: [sh, a.sh], cwd: /}\n",
        },
        {"a.sh": "# never\n", "b/EVAL.yaml": None},
    ),
    "a notebook": (
        {"agent.sh": "cat note*.ipynb\n", "notebook.ipynb": "30 days\n"},
        {"notebook.ipynb": "never\n"},
    ),
    "a prompt that no exclusion of both sides names": (
        {".agentevals.yaml": "watch: ['!scripts/**']\n"},
        {"prompts/system.md": "Never.\n", ".agentevals.yaml": "watch: ['!scripts/**', '!p*/**']\n"},
    ),
}


def reviewed(folder: Path, base: Files, change: Files, *options: str) -> command.Done:
    made = Repository.create(folder / "repository", {**BASE, **base})
    made.git("checkout", "--quiet", "-b", "change")
    made.commit("change", change)
    return command.run(made.path, "review", "--base", "main", "--confirm", "0", *options)


@pytest.mark.parametrize("name", BREAKS)
def test_review__a_broken_agent_is_red(tmp_path: Path, name: str) -> None:
    done = reviewed(tmp_path, *BREAKS[name])
    assert done.code == 1, done.out + done.err
    assert "1 test regressed" in done.out


def test_review__rules_reach_into_a_submodule(tmp_path: Path) -> None:
    prompts = Repository.create(tmp_path / "prompts", {"system.md": "30 days\n"})
    rules: Files = {".agentevals.yaml": "watch: ['prompts/*.md', agent.sh]\n"}
    files = {**BASE, **rules, "prompts/system.md": None}
    made = Repository.create(
        tmp_path / "repository", {path: text for path, text in files.items() if text}
    )
    made.git("submodule", "add", "--quiet", prompts.path.as_uri(), "prompts")
    made.commit("main")
    made.git("checkout", "--quiet", "-b", "change")
    prompts.commit("change", {"system.md": "never\n"})
    Repository(made.path / "prompts").git("pull", "--quiet", "origin", "main")
    made.commit("change")
    prepare = "git -c protocol.file.allow=always submodule update --init"
    done = command.run(
        made.path, "review", "--base", "main", "--confirm", "0", "--prepare", prepare
    )
    assert done.code == 1, done.out + done.err
    assert "watch: prompts" in done.out
    assert "no effect" not in done.out


@pytest.mark.parametrize(
    ("path", "is_affected"),
    [
        ("requirements.txt", True),
        ("uv.lock", True),
        ("SKILL.md", True),
        ("AGENTS.md", True),
        (".github/workflows/evals.yml", True),
        (".github/workflows/lint.yml", False),
        ("README.md", False),
        ("docs/how-to.md", False),
        (".agentevals.yaml", False),
    ],
)
def test_list__what_may_be_the_agent_s(tmp_path: Path, path: str, is_affected: bool) -> None:
    texts = {".github/workflows/evals.yml": "- uses: org/agentevals-action@v1\n"}
    made = Repository.create(tmp_path, BASE)
    made.commit("change", {path: texts.get(path, "# more\n")})
    done = command.run(tmp_path, "list", "--base", "HEAD~1")
    assert (f"no suite covers {path}" in done.out) is is_affected, done.out + done.err
    assert ("affects no suite" in done.out) is not is_affected


def test_review__rules_of_both_sides_or_of_the_input_decide(tmp_path: Path) -> None:
    scripts: Files = {"scripts/release.sh": "exit\n"}
    rules: Files = {".agentevals.yaml": "watch: ['!scripts/**']\n"}
    assert "affects no suite" in reviewed(tmp_path / "file", rules, scripts).out
    declared = reviewed(tmp_path / "input", {}, scripts, "--watch", "prompts/**")
    assert "affects no suite" in declared.out
    assert "no rule of `watch` covers `scripts/release.sh`" in declared.out
    first = reviewed(tmp_path / "first", {}, {**scripts, **rules})
    assert "no suite covers `scripts/release.sh`" in first.out
    assert '- "!scripts/**"' in first.out
    assert "(1 call of agents on each side that runs)" in first.out


def test_review__files_of_the_suites_of_other_jobs_are_known(tmp_path: Path) -> None:
    judge = "[{type: code_judge, script: [sh, judge.sh]}]"
    tests = f"name: b\ntests: [{{id: b, input: x, assert: {judge}}}]\n"
    base: Files = {"b/EVAL.yaml": tests, "b/judge.sh": "echo '{\"score\": 1}'\n"}
    done = reviewed(tmp_path, base, {"b/judge.sh": "exit\n"}, "--suites", "evals/**/EVAL.yaml")
    assert "affects no suite" in done.out, done.out + done.err


def test_review__another_targets_file_affects_the_suites(tmp_path: Path) -> None:
    other = "- {name: default, provider: cli, command: [echo, never]}\n"
    base: Files = {"other.yaml": other, ".agentevals.yaml": "targets: .agentv/targets.yaml\n"}
    done = reviewed(tmp_path, base, {".agentevals.yaml": "targets: other.yaml\n"})
    assert done.code == 1, done.out + done.err
    assert "changed: .agentevals.yaml (targets)" in done.out


@pytest.mark.parametrize(
    ("change", "options", "code", "words"),
    [
        ({"a.txt": "x"}, ["--target", "defualt"], 2, "did you mean `default`?"),
        ({"README.md": "x"}, ["--target", "defualt"], 2, "a target that no targets file has"),
        ({"README.md": "x"}, ["--judge-target", "x"], 2, "the input `judge-target` names `x`"),
        ({"README.md": "x"}, ["--targets", "nope.yaml"], 2, "nope.yaml, which does not exist"),
    ],
)
def test_review__an_error_of_an_input_is_one_whatever_changed(
    tmp_path: Path, change: Files, options: list[str], code: int, words: str
) -> None:
    done = reviewed(tmp_path, {}, change, *options)
    assert done.code == code, done.out + done.err
    assert words in done.err + done.out


def test_review__the_workspace_of_base_is_its_tree(tmp_path: Path) -> None:
    agent = "- {name: default, provider: cli, command: sh $GITHUB_WORKSPACE/agent.sh, cwd: /}\n"
    made = Repository.create(tmp_path, {**BASE, ".agentv/targets.yaml": agent})
    made.commit("change", {"prompts/system.md": "Never.\n"})
    env = {"GITHUB_WORKSPACE": str(tmp_path)}
    done = command.run(tmp_path, "review", "--base", "HEAD~1", "--confirm", "0", env=env)
    assert done.code == 1, done.out + done.err


@pytest.mark.parametrize("broken", ["evals/EVAL.yaml", ".agentv/targets.yaml"])
@pytest.mark.parametrize("watch", [[], ["--watch", "src/**"]])
def test_review__a_broken_suite_is_affected_by_what_nothing_covers(
    tmp_path: Path, broken: str, watch: list[str]
) -> None:
    base: Files = {broken: "- {name: default, provider: clii}\n"}
    done = reviewed(tmp_path / "unknown", base, {"prompts/system.md": "Never.\n"}, *watch)
    assert (done.code, "[!CAUTION]" in done.out) == (2, True), done.out + done.err
    done = reviewed(tmp_path / "docs", base, {"README.md": "hello\n"}, *watch)
    assert (done.code, "affects no suite" in done.out) == (0, True), done.out + done.err
