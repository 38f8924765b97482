"""`run`, `compare`, `validate`, `list`, `schema`, `demo`: the command line on real suites."""

import os
import signal
from pathlib import Path

import pytest

from agentevals_action.results.jsonl import read_results
from agentevals_action.targets.prices import price_table
from tests.support import command
from tests.support.openai_server import OpenAIServer
from tests.support.repositories import Repository

ROOT = Path(__file__).resolve().parents[2]

MOCK = """\
targets:
  - name: default
    provider: mock
    responses:
      - {pattern: broken, response: nothing of use}
      - {pattern: ".*", response: hello there}
"""


def suite(*tests: str) -> str:
    rows = [
        f"  - {{id: {name}, input: {name}, assert: [{{type: contains, value: hello}}]}}\n"
        for name in tests
    ]
    return "name: greeter\ntests:\n" + "".join(rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    (place / ".agentv").mkdir(parents=True)
    (place / ".agentv/targets.yaml").write_text(MOCK)
    (place / "EVAL.yaml").write_text(suite("one", "two"))
    return place


def ids(path: Path) -> list[str]:
    return [result.eval_id for result in read_results(path)]


@pytest.mark.parametrize(
    "typed",
    [
        *("run nope", "run more", "run --suites nope/**", "run --test nope", "run --tset one"),
        *("run --target nope", "run --samples many", "runn", "review --base nope"),
        "review --base HEAD --suites nope/**",
    ],
)
def test_report__of_the_last_run_survives_a_typo(folder: Path, typed: str) -> None:
    (folder / "more").mkdir()
    repository = Repository(folder)
    repository.git("init", "--quiet", "--initial-branch=main")
    repository.commit("first")
    assert command.run(folder, "run").code == 0
    report = folder / "agentevals-report"
    before = {file.name: file.read_bytes() for file in report.iterdir()}
    assert "report.html" in before
    assert command.run(folder, *typed.split()).code == 2
    assert {file.name: file.read_bytes() for file in report.iterdir()} == before


@pytest.mark.parametrize(("ignored", "is_noticed"), [("", True), ("/agentevals-report/\n", False)])
def test_notice__git_does_not_ignore_the_report_folder(
    folder: Path, ignored: str, is_noticed: bool
) -> None:
    (folder / ".gitignore").write_text(ignored)
    notice = "git does not ignore the report folder: `echo /agentevals-report/ >> .gitignore`"
    assert notice not in command.run(folder, "run").err  # no repository
    repository = Repository(folder)
    repository.git("init", "--quiet", "--initial-branch=main")
    repository.commit("first")
    (folder / "EVAL.yaml").write_text(suite("one"))
    for arguments in (["run"], ["review", "--base", "HEAD"]):
        done = command.run(folder, *arguments)
        assert (done.out + done.err).count(notice) == is_noticed


def test_run__resume_keeps_what_was_shown_and_tries_errors_again(
    folder: Path, tmp_path: Path
) -> None:
    agent = f'read name; echo "$name" >> {tmp_path}/asked; test "$name" = two && test ! -f {tmp_path}/ready && exit 9; echo hello\n'
    (folder / "agent.sh").write_text(agent)
    (folder / ".agentv/targets.yaml").write_text(
        "targets: [{name: default, provider: cli, command: [sh, agent.sh]}]\n"
    )
    assert command.run(folder, "run").code == 3
    (tmp_path / "ready").touch()
    done = command.run(folder, "run", "--resume")
    assert done.code == 0, done.out + done.err
    assert ids(folder / "agentevals-report/results.jsonl") == ["one", "two"]
    assert sorted((tmp_path / "asked").read_text().split()) == ["one", "two", "two"]


def test_run__keys_of_targets_are_never_shown_whatever_they_are_called(folder: Path) -> None:
    (folder / ".env").write_text(
        "OUR_MODEL_ACCESS=abcdefgh-12345678\nSOME_TOKEN=ijklmnop-12345678\n"
    )
    with OpenAIServer(otherwise="hello abcdefgh-12345678 and ijklmnop-12345678") as server:
        model = f"{{name: default, provider: openai, model: m, base_url: '{server.url}', api_key: '${{{{ OUR_MODEL_ACCESS }}}}'}}"
        (folder / ".agentv/targets.yaml").write_text(f"targets: [{model}]\n")
        done = command.run(folder, "run")
    written = (folder / "agentevals-report/results.jsonl").read_text()
    assert done.code == 0, done.out + done.err
    assert "hello *** and ***" in written
    assert "12345678" not in done.out + done.err + written


def test_run__killed_keeps_what_was_done(folder: Path, tmp_path: Path) -> None:
    (folder / "EVAL.yaml").write_text(suite("one", "two", "slow"))
    agent = f'read name; echo "$name" >> {tmp_path}/asked; test "$name" = slow && test ! -f {tmp_path}/ready && sleep 60; echo hello\n'
    (folder / "agent.sh").write_text(agent)
    (folder / ".agentv/targets.yaml").write_text(
        "targets: [{name: default, provider: cli, command: [sh, agent.sh]}]\n"
    )
    temp = {"TMPDIR": str(tmp_path)}  # what a killed run leaves goes with the test
    process = command.start(folder, "run", "--max-concurrency", "1", env=temp)
    command.wait_for(tmp_path / "asked", process, "slow")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)
    assert ids(folder / "agentevals-report/results.jsonl") == ["one", "two"]
    (tmp_path / "ready").touch()
    assert command.run(folder, "run", "--resume").code == 0
    assert sorted((tmp_path / "asked").read_text().split()) == ["one", "slow", "slow", "two"]


def test_run__a_model_over_http_with_a_judge(folder: Path) -> None:
    with OpenAIServer(
        {"You grade": '{"score": 0.9, "hits": ["names the weather"]}', "Weather": "Sunny."},
        key="sk-a-key-of-the-test",
    ) as server:
        targets = f"targets:\n  - {{name: default, provider: openai, model: m, base_url: '{server.url}', api_key: '${{{{ KEY }}}}'}}\n"
        (folder / ".agentv/targets.yaml").write_text(targets)
        (folder / "EVAL.yaml").write_text(
            "name: weather\ntests:\n  - {id: sun, criteria: names the weather, input: Weather?}\n"
        )
        done = command.run(folder, "run", env={"KEY": "sk-a-key-of-the-test"})
        assert done.code == 0, done.out + done.err
        refused = command.run(folder, "run", env={"KEY": "sk-another-key-of-it"})
    (result,) = read_results(folder / "agentevals-report/results.jsonl")
    assert refused.code == 3
    assert result.verdict is None
    assert "sk-another-key-of-it" not in refused.out + refused.err


def test_run__a_known_model_has_a_cost_by_default(folder: Path) -> None:
    (folder / "EVAL.yaml").write_text(
        "name: priced\ntests:\n  - {id: one, input: hi, assert: [{type: cost, budget: 0.0001}]}\n"
    )
    with OpenAIServer(otherwise="hi") as server:
        (folder / ".agentv/targets.yaml").write_text(
            "- {name: default, provider: openai, model: gpt-5-2025-08-07, "
            f'base_url: "{server.url}"}}\n'
        )
        done = command.run(folder, "run")
    (result,) = read_results(folder / "agentevals-report/results.jsonl")
    source = f"price table {price_table().date}"
    # 11 tokens in, of which 3 are cached, and 7 out: (8 × 1.25 + 3 × 0.125 + 7 × 10) / 1e6
    assert result.spent.cost_usd == pytest.approx(0.000080375)
    assert result.trace_summary
    assert result.trace_summary.cost_source == source
    assert result.spent.cost_sources == (source,)
    assert result.hits == (
        f"cost: 0.000080375 USD is within the limit of 0.0001 USD (source: {source})",
    )
    assert f"This run cost under $0.0001 (source: {source})." in done.out


def test_schema__is_the_one_in_the_repository() -> None:
    for words, name in (((), "eval"), (("results",), "results")):
        done = command.run(ROOT, "schema", *words)
        assert done.out == (ROOT / f"schemas/{name}.schema.json").read_text("utf-8")


def test_run__a_full_disk_is_one_sentence_and_the_rows_so_far_are_kept(folder: Path) -> None:
    names = [f"test-{number}" for number in range(100)]
    (folder / "EVAL.yaml").write_text(suite(*names))
    done = command.run_with_small_files(folder, 16, ["run"], command.environment())

    assert done.code == 3, done.out
    assert "agentevals-report/results.jsonl cannot be written: File too large" in done.out
    assert "Traceback" not in done.out
    assert "\ninconclusive: " in done.out

    again = command.run(folder, "run", "--resume")
    assert again.code == 0, again.err
    assert "of 100 tests are kept" in again.err
    assert ids(folder / "agentevals-report/results.jsonl") == names


def test_run__another_model_by_another_variable_is_another_agent(folder: Path) -> None:
    (folder / ".agentv/targets.yaml").write_text(
        "targets: [{name: default, provider: cli, command: 'echo hello ${{ MODEL }}'}]\n"
    )
    digests = []
    for model in ("a", "b", "a"):
        assert command.run(folder, "run", env={"MODEL": model}).code == 0
        results = list(read_results(folder / "agentevals-report/results.jsonl"))
        digests.append({result.fingerprint.agent for result in results if result.fingerprint})
    assert digests[0] == digests[2] != digests[1]


#: Runs scripts of `sh`.
BUN = """\
#!/bin/sh
for word; do :; done
exec sh $word
"""


def test_own_type__its_program_scores_the_answer(tmp_path: Path) -> None:
    Repository.create(
        tmp_path / "own",
        {
            ".agentv/targets.yaml": "- {name: default, provider: mock}\n",
            ".agentv/assertions/polite.ts": "grep -q please && echo '{\"score\": 1}' "
            "|| echo '{\"score\": 0}'\n",
            "evals/EVAL.yaml": "name: suite\ntests:\n"
            "  - {id: good, input: Come in please., assert: [{type: polite}]}\n"
            "  - {id: bad, input: Come in., assert: [{type: polite}]}\n",
            "bin/bun": BUN,
        },
    )
    (tmp_path / "own/bin/bun").chmod(0o755)

    env = {"PATH": f"{tmp_path / 'own/bin'}:{os.environ['PATH']}"}
    done = command.run(tmp_path / "own", "run", env=env)

    assert done.code == 1, done.err
    results = read_results(tmp_path / "own/agentevals-report/results.jsonl")
    assert {each.eval_id: each.score for each in results} == {"good": 1, "bad": 0}
