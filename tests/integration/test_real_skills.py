"""A skill of head and one of base in the hands of the real command-line agents, whose model on
loopback answers with what it sees of the skill."""

import json
from dataclasses import dataclass
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
MANUAL = SKILL.replace("---\nIt", "disable-model-invocation: true\n---\nIt")
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


def repository(folder: Path, agent: str, skill: str) -> Repository:
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
        "skills/shop/SKILL.md": skill.format(side="BASE"),
        "skills/shop/evals/evals.json": json.dumps({"skill_name": "shop", "evals": tests}),
        ".agentv/targets.yaml": json.dumps(targets),
        ".gitignore": "/agentevals-report/\n",
    }
    made = Repository.create(folder, files)
    made.git("checkout", "--quiet", "-b", "change")
    made.commit("change", {"skills/shop/SKILL.md": skill.format(side="HEAD")})
    return made


@dataclass(frozen=True)
class Place:
    """Where the agents are, and where their files may be."""

    programs: Path
    folder: Path
    codex_home: Path


@pytest.fixture
def place(programs: Path, tmp_path: Path, codex_home: Path) -> Place:
    return Place(programs, tmp_path, codex_home)


def answers(
    agent: str, place: Place, script: list[Turn], skill: str, samples: int = 1
) -> dict[str, list[str]]:
    """The answers of each side, whose tests all regress."""
    home = place.folder / "home"
    home.mkdir()
    made = repository(place.folder / "repository", agent, skill)
    with AgentModels({"CASE-": script}) as server:
        variables = real_agents.configure(agent, server.url, home, place.codex_home, {})
        options = ("--samples", str(samples), "--env", ",".join(variables), "--confirm", "0")
        path = f"{place.programs}:{command.PATH}"
        environ = {**variables, "HOME": str(home), "PATH": path}
        done = command.run(
            made.path, "review", "--base", "main", *options, env=environ, timeout=800
        )
    assert done.code == 1, done.out + done.err
    assert f"{TESTS} tests regressed" in done.out
    found: dict[str, list[str]] = {}
    for side, file in (("BASE", "base.jsonl"), ("HEAD", "results.jsonl")):
        rows = (made.path / "agentevals-report" / file).read_text().splitlines()
        of_tests = [json.loads(row)["samples"] for row in rows]
        found[side] = [sample["candidateAnswer"] for each in of_tests for sample in each]
    return found


@pytest.mark.parametrize("agent", READS)
def test_review__each_side_has_its_own_skill(agent: str, place: Place) -> None:
    seen, call = READS[agent]
    samples = 3 if agent == "claude" else 1
    script = [Turn(calls=(call,)), Turn(finds=SEEN)]
    assert answers(agent, place, script, SKILL, samples) == {
        side: [f"{seen} {side}-LISTED {side}-TEXT"] * (TESTS * samples) for side in ("BASE", "HEAD")
    }


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_review__a_skill_for_the_user_alone_is_invoked(agent: str, place: Place) -> None:
    script = [Turn(finds=r"(?:BASE|HEAD)-TEXT")]
    assert answers(agent, place, script, MANUAL) == {
        side: [f"{side}-TEXT"] * TESTS for side in ("BASE", "HEAD")
    }
