"""`run` with a judge that asks a model through its target proxy: what it may ask, what it costs,
what it must not see."""

from pathlib import Path

from agentevals_action.results.jsonl import encode_row, read_results
from tests.support import command
from tests.support.openai_server import OpenAIServer

JUDGE = '''\
import json, os, sys, urllib.request

case = json.load(sys.stdin)


def ask(path, data=None):
    """What the target proxy says."""
    headers = {"Authorization": "Bearer " + os.environ["AGENTV_TARGET_PROXY_TOKEN"], "Content-Type": "application/json"}
    body = None if data is None else json.dumps(data).encode()
    with urllib.request.urlopen(urllib.request.Request(os.environ["AGENTV_TARGET_PROXY_URL"] + path, body, headers)) as reply:
        return json.load(reply)


said = ask("/invoke", {"question": "Rate this from 0 to 1: " + case["answer"], "systemPrompt": "You rate."})["rawText"]
seen = sorted(name for name in os.environ if "KEY" in name)
print(json.dumps({"score": float(said), "details": {"info": ask("/info"), "keys": seen}}))
'''
SUITE = """\
name: rated
tests:
  - id: kind
    input: hi
    assert:
      - {name: rating, type: code_judge, script: [python3, judge.py], target: {max_calls: 2}}
"""
TARGETS = """\
targets:
  - {{name: default, provider: mock, responses: [{{pattern: '.*', response: hello there}}], judge_target: model}}
  - {{name: model, provider: openai, model: m, base_url: '{url}', api_key: '${{{{ MODEL_KEY }}}}', price: {{input: 1000000, output: 0}}}}
"""


def folder(tmp_path: Path, url: str) -> Path:
    (tmp_path / ".agentv").mkdir()
    (tmp_path / ".agentv/targets.yaml").write_text(TARGETS.format(url=url))
    (tmp_path / "EVAL.yaml").write_text(SUITE)
    (tmp_path / "judge.py").write_text(JUDGE)
    return tmp_path


def test_run__a_judge_that_asks_a_model_has_no_key_and_its_cost_counts(tmp_path: Path) -> None:
    with OpenAIServer({"Rate this": "0.9"}, key="sk-a-key-of-the-test") as server:
        place = folder(tmp_path, server.url)
        done = command.run(place, "run", env={"MODEL_KEY": "sk-a-key-of-the-test"})

    assert done.code == 0, done.out + done.err
    (result,) = read_results(place / "agentevals-report/results.jsonl")
    (rating,) = result.evaluator_results
    assert rating.score == 0.9
    assert rating.details == {
        "info": {
            "targetName": "model",
            "maxCalls": 2,
            "callCount": 1,
            "availableTargets": ["default", "model"],
        },
        "keys": [],
    }
    assert result.spent.cost_usd, "what the judge's program asked for is the test's cost"


def test_run__a_judge_whose_model_fails_is_an_error_and_says_so(tmp_path: Path) -> None:
    with OpenAIServer({"Rate this": "0.9"}, key="sk-the-right-key-of-it") as server:
        place = folder(tmp_path, server.url)
        done = command.run(place, "run", env={"MODEL_KEY": "sk-another-key-of-it"})

    assert done.code == 3
    (result,) = read_results(place / "agentevals-report/results.jsonl")
    assert result.verdict is None
    assert result.error is not None
    assert "the judge `model` could not be asked" in result.error.message
    assert "sk-another-key-of-it" not in encode_row(result).decode() + done.out + done.err
