"""`review`: a change to a local repository as a pull request would be reviewed, through the command
line."""

import json
from base64 import b64encode
from pathlib import Path

import pytest

from tests.support import command
from tests.support.repositories import Repository

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
TARGETS = """\
targets:
  - name: default
    provider: cli
    command: [sh, /agent.sh]
    cwd: /
"""
AGENT = 'read name; echo "Good day, $name."\n'
IMPOLITE = 'read name; echo "Yo $name"\n'
NAMELESS = 'read name; echo "Good day."\n'


def agent(code: str) -> dict[str, str | bytes | None]:
    return {"agent.sh": f"{code}"}


FILES = {
    "evals/EVAL.yaml": SUITE,
    ".agentv/targets.yaml": TARGETS.replace("/agent.sh", "agent.sh"),
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


def test_review__code_that_no_suite_covers_runs_all_unless_watch_names_the_agent(
    repository: Repository,
) -> None:
    repository.commit("code", {"README.md": "hello", "src/kb.py": "x = 1\n"})
    done = review(repository)
    assert done.code == 0, done.err
    assert (
        "no suite covers `src/kb.py`, and nothing says that the agent does not use it" in done.out
    )
    assert "README" not in done.out
    named = review(repository, "--watch", "agent.sh")
    assert "the change affects no suite" in named.out
    assert "`src/kb.py`: if it belongs to the agent, add `src/**` to `watch`" in named.out
    assert "src/kb.py" not in review(repository, "--watch", "src/**").out.partition("Why")[0]


def test_review__a_suite_that_is_excluded_is_not_called_uncovered(repository: Repository) -> None:
    repository.commit("another", {"wip/EVAL.yaml": SUITE, "src/kb.py": "x = 1\n"})
    done = review(repository, "--suites", "!wip/**", "--watch", "agent.sh")
    assert done.code == 0, done.err
    assert "covers `src/kb.py`: if it belongs" in done.out
    assert "wip/" not in done.out


def test_review__of_the_base_itself_says_that_nothing_was_compared(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "main")
    done = review(repository)
    assert done.code == 0, done.err
    assert "nothing was compared, because head is the base and no file differs from it" in done.out
    assert "affects no suite" not in done.out
    repository.write({"README.md": "hello"})
    assert "the change affects no suite" in review(repository).out


def test_review__rules_for_the_suites_of_another_job_are_no_mistake(repository: Repository) -> None:
    """Several agents in one repository, each with a job of its own and one file of rules."""
    rules = "watch: ['billing/** => billing/**', 'shop/** => shop/**']\n"
    files = {"shop/EVAL.yaml": SUITE, "billing/EVAL.yaml": SUITE, ".agentevals.yaml": rules}
    repository.commit("two agents", {**files, "shop/a.py": "", "billing/b.py": ""})
    repository.git("branch", "--force", "main")
    repository.commit("billing", {"billing/b.py": "x = 1\n"})
    done = review(repository, "--working-directory", "shop")
    assert done.code == 0, done.err
    assert "the change affects no suite" in done.out
    assert "has no effect" not in done.out
    assert "covers" not in done.out


def test_review__untouched_all_runs_every_suite(repository: Repository) -> None:
    repository.commit("code", {"src/kb.py": "x = 1\n"})
    done = review(repository, "--untouched", "all")
    assert done.code == 0, done.err
    assert "the change affects no suite" not in done.out
    assert "greets" in results(repository)


def test_review__a_regression_and_a_failed_gate_block(repository: Repository) -> None:
    repository.commit("impolite", agent(NAMELESS))
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


def test_review__another_grading_grades_the_base_again(repository: Repository) -> None:
    repository.commit(
        "stricter", {"evals/EVAL.yaml": SUITE.replace('"Good day"', '"Good evening"')}
    )
    done = review(repository)
    # Neither side says it: nothing got worse by the agent, so nothing regressed.
    assert done.code == 0, done.out
    assert results(repository)["greets"]["verdict"] == "fail"
    assert "re-scored" in done.out


@pytest.mark.parametrize("grading", ["Good day", "day"])
def test_review__fresh_samples_of_base_stand_in_its_file_only_as_base_grades(
    repository: Repository, grading: str
) -> None:
    """A thin base is sampled again, and graded as head grades: no part of a row that holds base's
    own grading."""
    same = grading == "Good day"
    repository.commit(
        "worse, by another measure",
        {"evals/EVAL.yaml": SUITE.replace("Good day", grading), **agent(NAMELESS)},
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
    files: dict[str, str | bytes | Path | None] = {
        **FILES,
        "evals/EVAL.yaml": suite,
        "evals/it.gif": picture,
        "agent.sh": f"echo '{json.dumps({'messages': [answer]})}'\n",
    }
    repository = Repository.create(tmp_path / "repository", files)
    repository.git("checkout", "--quiet", "-b", "change")
    answer = {**answer, "tool_calls": [{"tool": "look"}, mail]}
    repository.commit("mail", agent(f"echo '{json.dumps({'messages': [answer]})}'\n"))
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


def test_review__a_removed_gate_test_and_suite_are_shown(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "main")
    repository.commit("two", {"more/EVAL.yaml": SUITE})
    repository.git("checkout", "--quiet", "-B", "change")
    kept = SUITE[: SUITE.index("  - id: short")].replace(", required: true", "")
    repository.commit("fewer", {"more/EVAL.yaml": None, "evals/EVAL.yaml": kept})
    done = review(repository)
    assert done.code == 0
    assert "more/EVAL.yaml" in done.out
    assert "short" in done.out
    assert "by-name" in done.out
    assert "gate" in done.out.split("\n\n")[0]


def test_review__a_suite_with_errors_is_invalid_and_the_others_run(repository: Repository) -> None:
    broken = SUITE.replace("type: contains, value: Ada", "type: contians, value: Ada").replace(
        "name: greeter", "name: broken"
    )
    repository.commit("broken", {"more/EVAL.yaml": broken, **agent(IMPOLITE)})
    done = review(repository)
    assert done.code == 2
    assert "more/EVAL.yaml:8" in done.out
    assert "contians" in done.out
    assert set(results(repository)) == {"greets", "short"}


def test_review__both_sides_read_the_env_files_of_the_working_tree(tmp_path: Path) -> None:
    """Targets by `${{ }}`, and programs themselves; a file that git tracks is each side's own."""
    script = '. ./.env; . ./own/.env; echo "$1 $KEY $OWN"\n'
    target = "{name: default, provider: cli, command: [sh, agent.sh, '${{ KEY }}'], cwd: /}"
    repository = Repository.create(
        tmp_path / "repository",
        {
            "EVAL.yaml": "tests: [{id: a, input: q, assert: [{type: contains, value: k-1 k-1}]}]\n",
            ".agentv/targets.yaml": f"[{target}]\n",
            "agent.sh": script,
            "own/.env": "OWN=before\n",
            ".gitignore": "/.env\n/agentevals-report/\n",
        },
    )
    repository.write({".env": "KEY=k-1\n", "own/.env": "OWN=after\n", "agent.sh": script + "#\n"})

    done = command.run(repository.path, "review", "--base", "HEAD")

    assert done.code == 0, done.out + done.err
    answers = [
        results(repository, name)["a"]["candidateAnswer"]
        for name in ("results.jsonl", "base.jsonl")
    ]
    assert answers == ["k-1 k-1 after", "k-1 k-1 before"]


def test_review__a_missing_key_names_the_places_that_work(tmp_path: Path) -> None:
    target = "{name: default, provider: openai, model: m, api_key: '${{ KEY }}'}"
    suite = "tests: [{id: a, input: q, assert: [{type: contains, value: k}]}]\n"
    files = {"EVAL.yaml": suite, ".agentv/targets.yaml": f"[{target}]\n"}
    repository = Repository.create(tmp_path / "repository", files)
    repository.write({"EVAL.yaml": suite + "# changed\n"})

    done = command.run(repository.path, "review", "--base", "HEAD")

    assert done.code == 2
    assert "needs KEY, which is not set; set it in the environment or a `.env` file;" in done.out


def test_review__the_last_suites_are_deleted_and_named(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "main")
    repository.commit("one more", {"evals/tone/EVAL.yaml": SUITE})
    repository.git("checkout", "--quiet", "-B", "change")
    gone: dict[str, str | bytes | None] = {"evals/EVAL.yaml": None, "evals/tone/EVAL.yaml": None}
    repository.commit("no suite is left", gone)
    done = review(repository)
    assert done.code == 2
    named = "the change deletes `evals/EVAL.yaml` and `evals/tone/EVAL.yaml`"
    assert f"there is no suite in this repository: {named}" in done.err
    assert "restore one of them" in done.err


def test_review__a_moved_suite_that_git_does_not_know_yet_has_its_base(
    repository: Repository,
) -> None:
    (repository.path / "evals").rename(repository.path / "agents")
    repository.write(agent(NAMELESS))
    done = review(repository, "--confirm", "0")
    assert done.code == 1, done.out
    assert "renamed: evals/EVAL.yaml → agents/EVAL.yaml" in done.out
    assert "1 test regressed" in done.out


def test_review__prepare_runs_on_both_sides_and_its_failure_is_no_score(
    repository: Repository,
) -> None:
    repository.commit(
        "prepared", {"ready.sh": "exit 0", **agent("test -f ready.txt || exit 4\n" + AGENT)}
    )
    done = review(repository, "--prepare", "echo hello > ready.txt")
    assert done.code == 0, done.out
    repaired = review(repository, "--prepare", "test -f ready.sh && echo hello > ready.txt")
    assert repaired.code == 0, repaired.out
    assert "prepare" in repaired.out
    head_fails = review(
        repository, "--prepare", "test ! -f ready.sh || { echo no such compiler >&2; exit 7; }"
    )
    assert head_fails.code == 3
    assert {row["verdict"] for row in results(repository).values()} == {None}
    assert "no such compiler" in head_fails.out


def test_review__secrets_reach_neither_children_nor_reports(repository: Repository) -> None:
    repository.commit(
        "leaks",
        agent(
            'read name; echo "Good day, $name. ${OPENAI_API_KEY:-nothing} ${SERVICE_URL:-nothing}"\n'
        ),
    )
    secret = "sk-a-secret-of-thirty-characters"
    env = {"OPENAI_API_KEY": secret, "SERVICE_URL": "http://localhost"}
    done = review(repository, env=env)
    assert results(repository)["greets"]["candidateAnswer"] == "Good day, Ada. nothing nothing"
    shown = review(repository, "--env", "OPENAI_API_KEY,SERVICE_URL", env=env)
    assert results(repository)["greets"]["candidateAnswer"] == "Good day, Ada. *** http://localhost"
    written = "".join(
        path.read_text() for path in (repository.path / "agentevals-report").iterdir()
    )
    assert secret not in done.out + done.err + shown.out + shown.err + written


def on_main(repository: Repository, files: dict[str, str | bytes | None]) -> None:
    repository.git("checkout", "--quiet", "main")
    repository.commit("more on main", files)
    repository.git("checkout", "--quiet", "-B", "change")


def test_review__what_only_base_names_touches_the_suite(repository: Repository) -> None:
    """A program, a judge or a prompt that the change takes away is named by nobody on head any
    more."""
    judged = SUITE.replace(
        "    assert:\n      - {name: polite",
        "    assert:\n      - {type: code_judge, script: [sh, check.sh], required: true}\n      - {name: polite",
        1,
    )
    on_main(repository, {"evals/EVAL.yaml": judged, "evals/check.sh": "echo '{\"score\": 1}'\n"})
    repository.commit("no judge", {"evals/check.sh": None})
    assert review(repository).code == 3
    repository.git("checkout", "--quiet", "-B", "change", "main")
    repository.commit("no agent", {"agent.sh": None})
    assert review(repository).code == 3


def test_review__a_suite_that_vanishes_in_whatever_way_is_gone(repository: Repository) -> None:
    config = "eval_patterns: ['special/*.yaml']\n"
    on_main(
        repository,
        {"more/EVAL.yaml": SUITE, ".agentv/config.yaml": config, "special/one.yaml": SUITE},
    )
    (repository.path / "more/EVAL.yaml").unlink()
    (repository.path / "more/EVAL.yaml").symlink_to("nowhere.yaml")
    repository.commit("a link to nothing, and no patterns", {".agentv/config.yaml": None})
    done = review(repository)
    assert "`more/EVAL.yaml`" in done.out
    assert "`special/one.yaml`" in done.out
    assert "2 suites" in done.out.split("\n\n")[0]


def test_review__a_base_whose_suites_cannot_be_read_is_not_one_without_suites(
    repository: Repository,
) -> None:
    """A configuration that is broken on base alone: were its suites none, every regression would be
    a new test."""
    on_main(repository, {".agentv/config.yaml": "eval_patterns: 7\n"})
    repository.commit(
        "mends the configuration, and the agent says no",
        {".agentv/config.yaml": None, "agent.sh": "echo no\n"},
    )
    done = review(repository, "--fail-on", "regressions")
    assert done.code == 3, done.out
    assert "could not be obtained" in done.out
    assert "new" not in done.out


@pytest.mark.parametrize(
    ("files", "code", "words"),
    [
        ({"evals/.agentv/targets.yaml": "targets: ["}, 2, "evals/.agentv/targets.yaml:1:"),
        ({"evals/deep/data.yaml": "name: ["}, 2, "evals/deep/data.yaml:1:"),
        (
            {".agentv/targets.yaml": TARGETS.replace("sh, /agent.sh", "echo, Yo")},
            1,
            "1 target was changed",
        ),
    ],
    ids=["a new targets file", "a new sidecar", "the target that another file extends"],
)
def test_review__a_file_that_no_suite_named_before_affects_it(
    tmp_path: Path, files: dict[str, str | bytes | None], code: int, words: str
) -> None:
    """None of these files was named by the suite, or is the suite's own."""
    row = '{"id": "t", "input": "Ada", "criteria": "c", "evaluators": [{"type": "contains", "value": "Good"}]}\n'
    extends = "targets: [{name: default, extends: greeter}]\n"
    base = {
        ".agentv/targets.yaml": FILES[".agentv/targets.yaml"].replace("default", "greeter"),
        "agent.sh": AGENT,
        "evals/deep/.agentv/targets.yaml": extends,
        "evals/deep/data.jsonl": row,
        ".agentevals.yaml": "suites: ['evals/**/*.jsonl']\n",
        ".gitignore": "/agentevals-report/\n",
    }
    repository = Repository.create(tmp_path / "repository", base)
    repository.git("checkout", "--quiet", "-b", "change")
    targets = files.get(".agentv/targets.yaml")
    if isinstance(targets, str):
        files = {**files, ".agentv/targets.yaml": targets.replace("default", "greeter")}
    repository.commit("change", files)

    done = review(repository)

    assert done.code == code, done.out + done.err
    assert words in done.out + done.err


def test_review__suites_that_are_new_or_invalid_on_base_are_not_compared(
    repository: Repository,
) -> None:
    on_main(repository, {"evals/EVAL.yaml": "tests: 3\n"})
    repository.commit("repair", {"evals/EVAL.yaml": SUITE, "new/EVAL.yaml": SUITE})
    done = review(repository)
    assert done.code == 0, done.out
    assert "the suite is new" in done.out
    assert "the suite is invalid on base" in done.out
    summary = json.loads((repository.path / "agentevals-report/summary.json").read_text())
    broken, new = summary["suites"]
    assert (new["isNew"], new["broken"], new["changes"]["new"]) == (True, None, 2)
    assert broken["broken"].startswith("evals/EVAL.yaml:1:8: ")
    assert broken["changes"]["notComparable"] == 2
    repository.commit("rude", agent(IMPOLITE))
    worse = review(repository)
    assert worse.code == 3, worse.out
    assert "1 test failed and has no result on base" in worse.out


def test_review__a_suite_behind_a_link_is_touched_by_its_file(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "main")
    repository.write({"shared.yaml": SUITE})
    (repository.path / "evals/EVAL.yaml").unlink()
    (repository.path / "evals/EVAL.yaml").symlink_to("../shared.yaml")
    repository.commit("a link", {})
    repository.git("checkout", "--quiet", "-B", "change")
    repository.commit("stricter", {"shared.yaml": SUITE.replace("Good day", "Good evening")})
    assert "the change affects no suite" not in review(repository).out


def test_review__a_broken_suite_is_no_pass_when_all_are_asked_for(repository: Repository) -> None:
    on_main(repository, {"more/EVAL.yaml": "tests: []\n"})
    repository.commit("docs", {"README.md": "hello"})
    assert review(repository).code == 0
    assert review(repository, "--select", "all").code == 2


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
