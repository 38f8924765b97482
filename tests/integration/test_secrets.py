"""No output of a job contains a part of a secret, wherever a text is cut."""

import base64
import json
from pathlib import Path

import pytest

from tests.support import stand_in
from tests.support.gate import opened
from tests.support.repositories import Files

SECRET = "c0ffee7QWERTZuiop9asdfghJKLmnbvcxy1245Z"
#: A secret that encoders and escapes for Markdown, HTML and XML change, except for its end.
DISGUISED = 'p4ss "w/rd" & <b_*x> + 100% \\ k7LmTz9QvB'
#: Characters of a secret that an output may contain: as many as a short word.
MOST = 7

#: Prints so many other characters that a cut after any length leaves part of a secret.
FLOOD = "import os, sys\nflood = 'x' * {offset} + os.environ['SERVICE_KEY'] * 400\n"
PROGRAMS = {
    "stderr.py": "sys.stderr.write(flood); sys.exit(3)\n",
    "lines.py": "sys.stderr.write('\\n'.join([flood] * 20)); sys.exit(3)\n",
    "answer.py": "print(flood)\n",
    "forms.py": "import base64, json, urllib.parse\nkey = os.environ['OTHER_KEY']\n"
    "forms = [key, base64.b64encode(f'user:{key}!'.encode()).decode(), "
    "urllib.parse.quote(key, safe=''), json.dumps(key)[1:-1]]\n"
    "if 'judge' in sys.argv: print(json.dumps({'score': 0, 'misses': forms, 'details': {key: 1}}))\n"
    "else: print('forms:\\n' + '\\n'.join(forms))\n",
    "claude.py": "import json\nprint(json.dumps({'type': 'result', 'subtype': 'success', "
    "'is_error': True, 'result': flood, 'session_id': 's', 'num_turns': 1, 'duration_ms': 1, "
    "'duration_api_ms': 1, 'total_cost_usd': 0, 'usage': {}}))\n",
    "object.py": "print('{\"score\": \"' + flood + '\"}')\n",
    "setup.py": "line = 'y' * (60_000 + {offset}) + '\\r' + flood + '\\n'\n"
    "sys.stdout.write(line)\n"
    "for _ in range(700): sys.stdout.write(flood + '\\n' * ({offset} % 2))\n",
}
TARGETS = """\
targets:
  - {name: stderr, provider: cli, command: [python3, stderr.py], cwd: /}
  - {name: lines, provider: cli, command: [python3, lines.py], cwd: /}
  - {name: answer, provider: cli, command: [python3, answer.py], cwd: /, judge_target: answer}
  - {name: claude, provider: claude-cli, command: [python3, claude.py], cwd: /}
  - {name: forms, provider: cli, command: [python3, forms.py], cwd: /}
  - {name: service, provider: http, url: "URL", retries: 0}
"""
SUITE = """\
name: cuts
tests:
  - {id: stderr, input: a, execution: {target: stderr}, assert: [{type: contains, value: b}]}
  - {id: lines, input: a, execution: {target: lines}, assert: [{type: contains, value: b}]}
  - {id: claude, input: a, execution: {target: claude}, assert: [{type: contains, value: b}]}
  - {id: service, input: a, execution: {target: service}, assert: [{type: contains, value: b}]}
  - id: forms
    input: a
    execution: {target: forms}
    assert:
      - {type: contains, value: b-missing, required: true}
      - {type: code_judge, script: [python3, forms.py, judge], cwd: /, required: true}
  - id: answer
    input: a
    execution: {target: answer}
    assert:
      - {type: contains, value: b}
      - {type: llm_judge, prompt: 'How good is it? {{answer}}'}
      - {type: code_judge, script: [python3, stderr.py], cwd: /}
      - {type: code_judge, script: [python3, answer.py], cwd: /}
      - {type: code_judge, script: [python3, object.py], cwd: /}
"""
HOOKED = """\
name: hooked
workspace: {hooks: {before_each: {command: [python3, lines.py], cwd: /}}}
tests:
  - {id: one, input: a, execution: {target: answer}, assert: [{type: contains, value: b}]}
"""


OUTPUTS = {
    *("log", "summary", "outputs", "comments", "checks"),
    *("results.jsonl", "summary.json", "report.html", "junit.xml", "results.sarif"),
}


class Echo(stand_in.StandIn[stand_in.Received, stand_in.Sent]):
    """A service whose error repeats the key that it was given."""

    def __init__(self, offset: int) -> None:
        super().__init__()
        self._message = "x" * offset + SECRET * 400

    def reply(self, received: stand_in.Received) -> stand_in.Sent:
        return stand_in.Sent({"error": {"message": self._message}}, 400)


def files(url: str, offset: int) -> Files:
    programs = {
        name: (FLOOD + text).replace("{offset}", str(offset)) for name, text in PROGRAMS.items()
    }
    return {
        **programs,
        ".agentv/targets.yaml": TARGETS.replace("URL", url),
        "EVAL.yaml": SUITE,
        "hooked/EVAL.yaml": HOOKED,
    }


def leaks(text: str) -> set[str]:
    """The parts of the secrets in a text."""
    encoded = base64.b64encode(f"user:{DISGUISED}!".encode()).decode()
    parts = {DISGUISED[-8:], encoded[12:24], encoded[-20:-8]}
    parts |= {SECRET[start : start + MOST + 1] for start in range(len(SECRET) - MOST)}
    return {part for part in parts if part in text}


@pytest.mark.slow
@pytest.mark.parametrize("prepares", [False, True], ids=["tests", "preparation"])
@pytest.mark.parametrize("offset", [0, 17])
def test_outputs__no_cut_leaves_a_part_of_a_secret(
    tmp_path: Path, offset: int, prepares: bool
) -> None:
    setup = {"env": "SERVICE_KEY,OTHER_KEY", "select": "all", "setup": "python3 setup.py"}
    inputs = setup | ({"prepare": "python3 lines.py"} if prepares else {})
    with Echo(offset) as echo:
        new = files(echo.url, offset)
        old = {**new, "EVAL.yaml": "name: cuts\ntests: []\n"}
        with opened(tmp_path, old, new, inputs=inputs) as gate:
            job = gate.job(depth=1, env={"SERVICE_KEY": SECRET, "OTHER_KEY": DISGUISED})
            done = job.finish()
            server = gate.server
        shown = {
            "log": done.log,
            "summary": done.summary,
            "outputs": json.dumps(dict(done.outputs)),
            "comments": "".join(comment.body for comment in server.comments),
            "checks": str(server.check_runs),
            **{
                path.name: path.read_text()
                for path in (job.workspace / "agentevals-report").rglob("*")
                if path.is_file()
            },
        }
    assert {name: leaks(text) for name, text in shown.items() if leaks(text)} == {}
    assert done.code == (3 if prepares else 1), done.log
    assert shown.keys() >= OUTPUTS, shown.keys()
    assert prepares or shown["results.jsonl"].count("***") > 10
    assert prepares or "::error file=EVAL.yaml" in done.log or server.check_runs[-1].annotations
    expected = ["prepare"] if prepares else ["target", "judge", "evaluator", "workspace"]
    assert all(f'"kind":"{kind}"' in shown["results.jsonl"] for kind in expected)
    assert "***" in shown["results.jsonl"]
    assert "the rest is not shown" in done.log
