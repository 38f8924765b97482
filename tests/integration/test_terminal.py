"""What commands show a person: one screen on a terminal, the comment or JSON elsewhere."""

import json
import re
import signal
from pathlib import Path

import pytest

from tests.support import command
from tests.support.repositories import Repository
from tests.support.terminal import Terminal, screen_after, written_to

MOCK = """\
- name: default
  provider: mock
  responses:
    - {pattern: broken, response: no}
    - {pattern: '', response: hello}
"""


def suite(name: str, *inputs: str) -> str:
    tests = ", ".join(f"{{id: '{text}', input: '{text}'}}" for text in inputs)
    return f"name: {name}\nassert: [{{type: contains, value: hello}}]\ntests: [{tests}]\n"


def test_demo__is_one_screen_on_a_terminal_from_any_folder(tmp_path: Path) -> None:
    lines = screen_after(tmp_path, "demo", columns=80, env={"TMPDIR": str(tmp_path)})
    shown = "\n".join(lines).strip()

    rows = sum(max(1, -(-len(line) // 80)) for line in shown.splitlines())
    assert rows <= 24, shown
    (made,) = tmp_path.glob("agentevals-demo-*")
    assert (made / "agentevals-report/comment.md").is_file()
    assert f"{made.name[-8:]}/agentevals-report/report.html" in shown  # the path may be cut
    for words in (
        "Failed: 4 tests regressed (3 of them failed a required gate);",
        "pass → fail evals/EVAL.yaml:16 refund-window  regressed; required gate failed:",
        "agentevals-report/report.html",
    ):
        assert words in shown
    assert "<details>" not in shown
    assert "| Suite |" not in shown


@pytest.mark.slow
def test_demo__prints_the_comment_when_its_output_is_piped_or_on_request(tmp_path: Path) -> None:
    environ = {"TMPDIR": str(tmp_path)}
    piped = command.run(tmp_path, "demo", env=environ).out
    assert "| Suite |" in piped
    # Of its two judges, `calibration.json` lets one decide.
    assert piped.count("is advisory: ") == 1
    assert "The judge `rubrics` (`judge`) is advisory: its specificity is at least 0.60" in piped
    assert "`shipping-abroad` pass → borderline" in piped
    assert "| Suite |" in written_to(tmp_path, "demo", "--markdown", env=environ)


@pytest.fixture
def changed(tmp_path: Path) -> Repository:
    """Six suites, in five of which seven tests break."""
    files = {f"s{n}/EVAL.yaml": suite(f"suite-{n}", *"abcdefg") for n in range(6)}
    repository = Repository.create(tmp_path / "repository", {**files, ".agentv/targets.yaml": MOCK})
    broken = {path: text.replace("input: '", "input: 'broken ") for path, text in files.items()}
    repository.commit("broken", {**broken, "s5/EVAL.yaml": files["s5/EVAL.yaml"] + "# same\n"})
    return repository


def test_review__of_many_tests_is_still_one_screen(changed: Repository) -> None:
    arguments = ("review", "--base", "HEAD~1", "--fail-on", "failures")
    lines = "\n".join(screen_after(changed.path, *arguments, columns=80)).strip().splitlines()

    assert len(lines) <= 22, lines
    assert max(map(len, lines[1:])) <= 80
    assert "… and 2 more suites" in lines
    assert any(re.fullmatch(r"… and \d+ more", line) for line in lines)
    shown = " ".join(" ".join(lines).split())
    missed = 'question changed; missed: does not contain "hello"'
    assert f"pass → fail s0/EVAL.yaml:3 a {missed}" in shown, shown


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 40)])
def test_review__reasons_are_wrapped_and_notices_are_shown(
    tmp_path: Path, columns: int, rows: int
) -> None:
    words = [f"promise-{number}" for number in range(10)]
    checks = ", ".join(f"{{type: contains, value: {word}}}" for word in words)
    answer = " ".join(words)
    targets = "- {name: default, provider: mock, response: RESPONSE}\n"
    files = {
        "EVAL.yaml": f"name: one\nassert: [{checks}]\ntests: [{{id: a, input: q}}]\n",
        ".agentv/targets.yaml": targets.replace("RESPONSE", answer),
    }
    repository = Repository.create(tmp_path / "repository", files)
    repository.write({".agentv/targets.yaml": targets.replace("RESPONSE", "no")})
    arguments = ("review", "--base", "HEAD", "--watch", "no-such-folder/**")
    with Terminal(repository.path, *arguments, columns=columns, lines=rows) as terminal:
        lines = terminal.read_to_end()

    assert len(lines) < rows
    assert max(map(len, lines)) <= columns
    shown = " ".join(" ".join(lines).split())
    assert all(f'does not contain "{word}"' in shown for word in words), shown
    assert "notice: the rule `no-such-folder/**` of `watch`" in shown
    assert "working tree of" in shown


def test_review__of_an_invalid_suite_shows_its_error(tmp_path: Path) -> None:
    files = {"EVAL.yaml": "name: one\ntests: []\n", ".agentv/targets.yaml": MOCK}
    repository = Repository.create(tmp_path / "repository", files)
    repository.write({"EVAL.yaml": "name: one\ntests: [{id: a, input: q, asert: []}]\n"})

    shown = "\n".join(screen_after(repository.path, "review", "--base", "HEAD"))

    assert "EVAL.yaml:2:27: the field `asert`" in shown


def test_json__is_one_document_of_each_command(changed: Repository) -> None:
    review = command.run(changed.path, "review", "--base", "HEAD~1", "--json")
    assert json.loads(review.out)["outcome"] == "passed"
    run = command.run(changed.path, "run", "s0", "--json")
    assert run.code == 1
    assert json.loads(run.out)["suites"][0]["head"]["fail"] == 7
    changed.write({"s1/EVAL.yaml": "name: one\ntests: []\n"})
    validate = command.run(changed.path, "validate", "s0", "s1", "--json")
    assert validate.code == 2
    validated = json.loads(validate.out)
    (valid,), (error,) = validated["suites"], validated["errors"]
    assert (valid["path"], len(valid["tests"])) == ("s0/EVAL.yaml", 7)
    assert (error["path"], error["line"], validated["warnings"]) == ("s1/EVAL.yaml", 2, [])


@pytest.mark.parametrize("arguments", [("validate",), ("review", "--base", "HEAD")])
def test_json__is_one_document_also_if_the_configuration_is_broken(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    files = {"EVAL.yaml": suite("one", "a"), ".agentevals.yaml": "suits: [a]\n"}
    repository = Repository.create(tmp_path / "repository", files)

    done = command.run(repository.path, *arguments, "--json")

    assert done.code == 2
    first, last = json.loads(done.out)["errors"]
    assert first["problem"].startswith(".agentevals.yaml:1:1: the field `suits` is unknown")
    assert last["problem"] in done.err


def test_run__on_sigint_the_message_names_resume(tmp_path: Path) -> None:
    (tmp_path / ".agentv").mkdir()
    agent = "{name: default, provider: cli, command: 'touch started; sleep 60'}"
    (tmp_path / ".agentv/targets.yaml").write_text(f"[{agent}]\n")
    (tmp_path / "EVAL.yaml").write_text(suite("one", "a"))
    running = command.start(tmp_path, "run")
    command.wait_for(tmp_path / "started", running)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)

    assert running.returncode == 130
    assert "`--resume` continues" in err


@pytest.mark.slow
def test_selftest_and_run__fit_80_columns(changed: Repository) -> None:
    agent = "{name: default, provider: cli, command: [sh, -c, 'echo hello $RANDOM']}"
    changed.write({".agentv/targets.yaml": f"[{agent}]\n"})
    for arguments in (("run",), ("selftest", "s0", "--samples", "2")):
        lines = screen_after(changed.path, *arguments, columns=80)
        figures = [line for line in lines if re.search(r"EVAL.yaml .*\d", line)]
        assert figures
        assert max(map(len, figures)) <= 80, lines
