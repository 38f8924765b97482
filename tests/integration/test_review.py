"""`review` of a change to a local repository, as far as a table of cases (`test_commands.py`) cannot
say it: samples, pictures, a submodule."""

import json
from base64 import b64encode
from pathlib import Path

import pytest

from tests.support import command
from tests.support.repositories import Files, Repository

SUITE = """\
name: greeter
tests:
  - id: greets
    criteria: greets by name
    input: Ada
    assert:
      - {name: polite, type: contains, value: "Good day"}
      - {name: by-name, type: contains, value: Ada, required: true}
  - id: short
    criteria: is short
    input: Bob
    assert:
      - {type: regex, value: "^.{0,40}$"}
"""
AGENT = 'read name; echo "Good day, $name."\n'
NAMELESS: Files = {"agent.sh": 'read name; echo "Good day."\n'}
FILES: Files = {
    "evals/EVAL.yaml": SUITE,
    ".agentv/targets.yaml": "- {name: default, provider: cli, command: [sh, agent.sh], cwd: /}\n",
    "agent.sh": AGENT,
    ".gitignore": "/agentevals-report/\n",
}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A greeter on `main`, and a branch for its change."""
    made = Repository.create(tmp_path / "repository", FILES)
    made.git("checkout", "--quiet", "-b", "change")
    return made


def review(
    repository: Repository, *options: str, env: dict[str, str] | None = None
) -> command.Done:
    return command.run(repository.path, "review", "--base", "main", *options, env=env)


def results(repository: Repository, name: str = "results.jsonl") -> dict[str, dict[str, object]]:
    lines = (repository.path / "agentevals-report" / name).read_text().splitlines()
    return {row["evalId"]: row for row in map(json.loads, lines)}


def test_review__a_regression_and_a_failed_gate_block(repository: Repository) -> None:
    repository.commit("impolite", NAMELESS)
    done = review(repository)
    assert done.code == 1, done.out + done.err
    assert "> [!CAUTION]" in done.out
    assert "by-name" in done.out
    head, base = results(repository), results(repository, "base.jsonl")
    assert (head["greets"]["verdict"], base["greets"]["verdict"]) == ("fail", "pass")
    assert head["greets"]["gatesFailed"] == ["by-name"]
    assert (
        repository.path / "agentevals-report/comment.md"
    ).read_text().strip() == done.out.strip()


@pytest.mark.parametrize("grading", ["Good day", "day"])
def test_review__fresh_samples_of_base_stand_in_its_file_only_as_base_grades(
    repository: Repository, grading: str
) -> None:
    """A thin base is sampled again, and graded as head grades: no part of a row that holds base's
    own grading."""
    same = grading == "Good day"
    repository.commit(
        "worse, by another measure",
        {"evals/EVAL.yaml": SUITE.replace("Good day", grading), **NAMELESS},
    )
    done = review(repository)
    assert done.code == 1, done.out
    assert "passed 5 of 5 on base" in done.out
    actual = [line for line in done.err.splitlines() if line.startswith("check")]
    assert actual[0] == "checking 1 test whose verdict dropped …"
    assert actual[-1] == "checked 1 of 1 test whose verdict dropped, 9 fresh samples"

    row = results(repository, "base.jsonl")["greets"]
    assert isinstance(row["samples"], list)
    fresh = [sample for sample in row["samples"] if sample.get("role") == "fresh"]
    assert (len(row["samples"]), len(fresh)) == ((6, 5) if same else (1, 0))
    hits = {
        hit
        for sample in row["samples"]
        for result in sample["evaluatorResults"]
        for hit in result["hits"]
    }
    assert any("Good day" in hit for hit in hits)
    assert not any('"day"' in hit for hit in hits)


def test_review__pictures_are_on_the_page_and_tool_calls_that_differ_in_the_comment(
    tmp_path: Path,
) -> None:
    suite = """\
name: seen
tests:
  - id: seen
    input: [{role: user, content: [{type: text, value: What is it?}, {type: image, value: it.gif}]}]
    assert: [{type: tool_trajectory, mode: exact, expected: [{tool: look}], required: true}]
"""
    answer = {"role": "assistant", "content": "Done.", "tool_calls": [{"tool": "look"}]}
    mail = {"tool": "send_email", "input": {"to": "all@example.com"}}
    picture = b"GIF89a"
    files: Files = {
        **FILES,
        "evals/EVAL.yaml": suite,
        "evals/it.gif": picture,
        "agent.sh": f"echo '{json.dumps({'messages': [answer]})}'\n",
    }
    repository = Repository.create(tmp_path / "repository", files)
    repository.git("checkout", "--quiet", "-b", "change")
    answer = {**answer, "tool_calls": [{"tool": "look"}, mail]}
    repository.commit("mail", {"agent.sh": f"echo '{json.dumps({'messages': [answer]})}'\n"})
    done = review(repository)
    assert done.code == 1, done.err
    assert "**Both answers are equal**" in done.out
    assert (
        "**Head's tool calls that differ** (1 of 2)\n\n"
        '```text\nsend_email {"to": "all@example.com"}\n```'
    ) in done.out
    page = (repository.path / "agentevals-report" / "report.html").read_text(encoding="utf-8")
    uri = f"data:image/gif;base64,{b64encode(picture).decode()}"
    assert f'"pictures":["{uri}"]' in page.replace('": ', '":')


@pytest.mark.parametrize(
    ("wrong", "confirm", "code", "samples"),
    [("1", "6", 0, 4), ("9", "6", 1, 5), ("1", "0", 1, 1)],
)
def test_review__a_gate_that_fails_once_is_sampled_again(
    repository: Repository, wrong: str, confirm: str, code: int, samples: int
) -> None:
    """Of a test without a base, the first `wrong` answers are wrong."""
    counter = (
        'n=$(cat "$TMPDIR/n" 2>/dev/null || echo 0); echo $((n+1)) > "$TMPDIR/n"; read name; '
        f'test $n -ge {wrong} && echo "Good day, $name" || echo no\n'
    )
    repository.commit(
        "flaky", {"agent.sh": counter, "evals/EVAL.yaml": SUITE[: SUITE.index("  - id: short")]}
    )
    options = ("--confirm", confirm, "--baseline", "none", "--max-concurrency", "1")
    done = review(repository, *options, env={"TMPDIR": str(repository.path.parent)})
    row = results(repository)["greets"]
    assert isinstance(row["samples"], list)
    assert (done.code, len(row["samples"])) == (code, samples), done.out
    assert row["gatesFailed"] == (["by-name"] if code else [])


def test_review__rules_reach_into_a_submodule(tmp_path: Path, repository: Repository) -> None:
    prompts = Repository.create(tmp_path / "prompts", {"system.md": "Good day, Ada.\n"})
    rules = {".agentevals.yaml": "watch: ['prompts/*.md', agent.sh]\n"}
    repository.git("submodule", "add", "--quiet", prompts.path.as_uri(), "prompts")
    repository.commit("base", {**rules, "agent.sh": "cat prompts/*\n"})
    repository.git("branch", "--force", "main")
    prompts.commit("change", {"system.md": "Never.\n"})
    Repository(repository.path / "prompts").git("pull", "--quiet", "origin", "main")
    repository.commit("change")
    update = "git -c protocol.file.allow=always submodule update --init"
    for option in ("--prepare", "--setup"):
        done = review(repository, "--confirm", "0", option, update)
        assert done.code == 1, done.out + done.err
        assert "watch: prompts" in done.out
        assert "no effect" not in done.out


def test_review__base_without_its_submodule_is_not_base(
    tmp_path: Path, repository: Repository
) -> None:
    """The agent answers without the prompt, too: the test failed on both sides, and passed."""
    prompts = Repository.create(tmp_path / "prompts", {"system.md": "Good day, Ada.\n"})
    repository.git("submodule", "add", "--quiet", prompts.path.as_uri(), "prompts")
    repository.commit("base", {"agent.sh": "cat prompts/* || echo Ada.\n"})
    repository.git("branch", "--force", "main")
    Repository(repository.path / "prompts").write({"system.md": "Bye, Ada.\n"})
    done = review(repository, "--confirm", "0", "--select", "all")
    assert done.code == 3, done.out + done.err
    problem = "on base, the files of `prompts` are not checked out, and on head they are"
    assert f"{problem}; check submodules out there: `setup: git submodule" in done.out


def test_review__the_workspace_of_base_is_its_tree(repository: Repository) -> None:
    target = "- {name: default, provider: cli, command: sh $GITHUB_WORKSPACE/agent.sh, cwd: /}\n"
    repository.commit("base", {".agentv/targets.yaml": target})
    repository.git("branch", "--force", "main")
    repository.commit("change", NAMELESS)
    env = {"GITHUB_WORKSPACE": str(repository.path)}
    done = review(repository, "--confirm", "0", env=env)
    assert done.code == 1, done.out + done.err
    assert "1 test regressed" in done.out
