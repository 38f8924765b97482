"""A skill of head and one of base in the hands of the real command-line agents, whose model on
loopback answers with what it sees of the skill."""

import json
from pathlib import Path

import pytest

from tests.support import command, real_agents
from tests.support.agent_models import AgentModels, Call, Turn
from tests.support.repositories import Files, Repository

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

#: The agent shows the description from the start, the text and the folder to a model that asks.
SKILL = """\
---
name: shop
description: Answers about orders, with {side}-LISTED.
---
It says {side}-TEXT.
"""
SEEN = r"(?:BASE|HEAD)-(?:LISTED|TEXT)|\.\w+/skills/shop\b"
#: The folder in which each agent finds the skill, and the call with which its model asks for it.
READS = {
    "claude": (".claude/skills/shop", Call("Skill", {"skill": "shop"})),
    "codex": (
        ".agents/skills/shop",
        Call("exec_command", {"cmd": "cat .agents/skills/shop/SKILL.md"}),
    ),
    "copilot": (".agents/skills/shop", Call("skill", {"skill": "shop"})),
    "gemini": (".agents/skills/shop", Call("activate_skill", {"name": "shop"})),
}
TESTS = 6


def repository(folder: Path, agent: str) -> Repository:
    """A skill with its tests, which pass where the agent sees base's text; head has another."""
    tests = [
        {"id": number, "prompt": f"CASE-{number} please", "expected_output": "Base's text."}
        for number in range(TESTS)
    ]
    verdicts = {"BASE-TEXT": 1, ".": 0}
    responses = [
        {"pattern": pattern, "response": json.dumps({"score": score, "reasoning": "seen"})}
        for pattern, score in verdicts.items()
    ]
    default = {"name": "default", "provider": f"{agent}-cli", "judge_target": "judge"}
    if model := real_agents.MODELS.get(agent):
        default["model"] = model
    targets = [default, {"name": "judge", "provider": "mock", "responses": responses}]
    files: Files = {
        "skills/shop/SKILL.md": SKILL.format(side="BASE"),
        "skills/shop/evals/evals.json": json.dumps({"skill_name": "shop", "evals": tests}),
        ".agentv/targets.yaml": json.dumps(targets),
        ".gitignore": "/agentevals-report/\n",
    }
    made = Repository.create(folder, files)
    made.git("checkout", "--quiet", "-b", "change")
    made.commit("change", {"skills/shop/SKILL.md": SKILL.format(side="HEAD")})
    return made


@pytest.mark.parametrize("agent", READS)
def test_review__each_side_has_its_own_skill(
    agent: str, programs: Path, tmp_path: Path, codex_home: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    made = repository(tmp_path / "repository", agent)
    seen, call = READS[agent]
    samples = 3 if agent == "claude" else 1
    script = [Turn(calls=(call,)), Turn(finds=SEEN)]
    with AgentModels({"CASE-": script}) as server:
        variables = real_agents.configure(agent, server.url, home, codex_home, {})
        options = ("--samples", str(samples), "--env", ",".join(variables), "--confirm", "0")
        path = f"{programs}:{command.PATH}"
        environ = {**variables, "HOME": str(home), "PATH": path}
        done = command.run(
            made.path, "review", "--base", "main", *options, env=environ, timeout=800
        )
    assert done.code == 1, done.out + done.err
    assert f"{TESTS} tests regressed" in done.out
    for side, file in (("BASE", "base.jsonl"), ("HEAD", "results.jsonl")):
        rows = (made.path / "agentevals-report" / file).read_text().splitlines()
        answers = [
            sample["candidateAnswer"] for row in rows for sample in json.loads(row)["samples"]
        ]
        assert answers == [f"{seen} {side}-LISTED {side}-TEXT"] * (TESTS * samples)
