"""An agent of several files: a change of what its program imports is a change of the agent."""

from pathlib import Path

import pytest

from tests.support import command
from tests.support.repositories import Files, Repository

SUITE = """\
name: shop
tests:
  - {id: refund, input: May I return it?, assert: [{type: contains, value: 30 days}]}
"""
AGENT = """\
from shop.prompts import answer

def main(messages):
    return answer()

if __name__ == "__main__":
    print(answer())
"""
FILES: Files = {
    "evals/EVAL.yaml": SUITE,
    "agent.py": AGENT,
    "shop/prompts.py": "from shop import rules\n\ndef answer():\n    return rules.TEXT\n",
    "shop/rules.py": "TEXT = 'Within 30 days.'\n",
    "shop/other.py": "x = 1\n",
    "agent.mjs": "import { text } from './lib/text.mjs';\nconsole.log(text);\n",
    "lib/text.mjs": "export const text = 'Within 30 days.';\n",
    ".gitignore": "/agentevals-report/\n__pycache__/\n",
}
PYTHON = "provider: python, target: 'agent:main', cwd: /"
CHAIN = "agent.py imports shop/prompts.py, which imports shop/rules.py"


def repository(folder: Path, target: str) -> Repository:
    targets = f"targets: [{{name: default, {target}}}]\n"
    made = Repository.create(folder, {**FILES, ".agentv/targets.yaml": targets})
    made.git("checkout", "--quiet", "-b", "change")
    return made


@pytest.mark.parametrize(
    ("target", "path", "reason"),
    [
        (PYTHON, "shop/rules.py", f"changed: shop/rules.py ({CHAIN})"),
        (
            "provider: cli, command: [python3, agent.py], cwd: /",
            "shop/rules.py",
            f"changed: shop/rules.py ({CHAIN})",
        ),
        (
            "provider: cli, command: python3 -m agent, cwd: /",
            "agent.py",
            "changed: agent.py (target's command)",
        ),
        (
            "provider: http, url: 'http://127.0.0.1:{PORT}/', "
            "start: [uvicorn, 'shop.prompts:answer', --port, '{PORT}']",
            "shop/rules.py",
            "changed: shop/rules.py (shop/prompts.py imports shop/rules.py)",
        ),
        (
            "provider: cli, command: [bash, -lc, 'python3 agent.py'], cwd: /",
            "shop/rules.py",
            f"changed: shop/rules.py ({CHAIN})",
        ),
        (
            "provider: cli, command: [node, ../agent.mjs]",
            "lib/text.mjs",
            "changed: lib/text.mjs (agent.mjs imports lib/text.mjs)",
        ),
    ],
)
def test_list__a_change_of_what_an_agent_imports_affects_its_suites(
    tmp_path: Path, target: str, path: str, reason: str
) -> None:
    made = repository(tmp_path, target)
    made.commit("broken", {path: "x = 1\n"})
    done = command.run(tmp_path, "list", "--base", "main")
    assert reason in done.out, done.out + done.err
    made.git("checkout", "--quiet", "-B", "change", "main")
    made.commit("other", {"shop/other.py": "x = 2\n"})
    listed = command.run(tmp_path, "list", "--base", "main", "--watch", ".gitignore")
    assert "affects no suite" in listed.out
    unknown = command.run(tmp_path, "list", "--base", "main")
    assert "no suite covers shop/other.py" in unknown.out
    assert "all suites run (1 call of agents on each side that runs)" in unknown.err


def test_review__what_only_base_s_agent_imports_affects_the_suite(tmp_path: Path) -> None:
    made = repository(tmp_path, PYTHON)
    flat = "def main(messages):\n    return 'Within 30 days.'\n"
    made.commit("flat", {"agent.py": flat})
    made.git("branch", "flat")
    made.commit("deleted", {"shop/prompts.py": None})
    done = command.run(tmp_path, "review", "--base", "main")
    assert "removed: shop/prompts.py (agent.py imports shop/prompts.py)" in done.out, done.err
    # The commit before imports it no more.
    reviewed = command.run(tmp_path, "review", "--base", "flat", "--watch", ".gitignore")
    assert "affects no suite" in reviewed.out


def test_review__a_regression_in_what_an_agent_imports_fails(tmp_path: Path) -> None:
    made = repository(tmp_path, PYTHON)
    made.commit("broken", {"shop/rules.py": "TEXT = 'Never.'\n"})
    done = command.run(tmp_path, "review", "--base", "main", "--confirm", "0")
    assert done.code == 1, done.out + done.err
    assert "1 test regressed" in done.out
    assert CHAIN in done.out


def test_run__resume_notices_a_change_of_what_an_agent_imports(tmp_path: Path) -> None:
    made = repository(tmp_path, PYTHON)
    assert command.run(tmp_path, "run").code == 0
    made.write({"shop/rules.py": "TEXT = 'Never.'\n"})
    done = command.run(tmp_path, "run", "--resume")
    assert done.code == 1, done.out + done.err
