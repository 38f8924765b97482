"""Pull requests that are gated by suites of inspect and of AgentV, with the real programs."""

import shutil
from pathlib import Path

import pytest

from tests.support.plugin_models import VARIABLES, plugin_models
from tests.support.repositories import Files
from tests.support.runner_gate import opened, rules

DATA = Path(__file__).resolve().parents[1] / "data/runners"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

#: A task whose model answers with the content of a file, which stands for a prompt. A cache of
#: head's answers would be one of base's, too: both ask the same.
TASK = """\
from pathlib import Path
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

output = ModelOutput.from_content("mockllm/model", Path(__file__).with_name("answer.txt").read_text())
output.usage = ModelUsage(input_tokens=10, output_tokens=3, total_tokens=13)
outputs = [output.model_copy(deep=True) for _ in range(50)]

@task
def capitals():
    return Task(
        dataset=[
            Sample(id="france", input="Capital of France?", target="Paris"),
            Sample(id="spain", input="Capital of Spain?", target="capital"),
        ],
        solver=generate(cache=True),
        scorer=includes(),
        model=get_model("mockllm/model", custom_outputs=outputs),
    )
"""


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


def inspect(answer: str) -> Files:
    return {"evals/answer.txt": answer}


def agentv(answer: str) -> Files:
    agent = (DATA / "agentv/agent.py").read_text().replace('"Spain"', '"an outage"')
    return {"evals/agent.py": agent.replace("The capital is Paris.", answer)}


#: The test of an agent that gets worse, and its line.
REGRESSED = {
    "inspect": ("capitals/france", ("evals/task.py", 1)),
    "agentv": ("france", ("evals/capitals.eval.yaml", 5)),
}
#: The files of base apart from the agent, and the entry of the runner.
BASES = {
    "inspect": (
        {"evals/task.py": TASK},
        {"name": "inspect", "results": "inspect", "suites": ["evals/task.py"]},
    ),
    "agentv": (
        {
            name: (DATA / "agentv" / file).read_text()
            for name, file in {
                "evals/capitals.eval.yaml": "capitals.eval.yaml",
                ".agentv/targets.yaml": "targets.yaml",
                "evals/judge.py": "judge.py",
            }.items()
        },
        {"name": "agentv", "results": "agentv", "suites": ["evals/*.eval.yaml"]},
    ),
}
AGENTS = {"inspect": inspect, "agentv": agentv}


def base(name: str) -> Files:
    others, entry = BASES[name]
    return {**others, **AGENTS[name]("The capital is Paris."), **rules(entry)}


@pytest.mark.parametrize("name", BASES)
def test_pull_request__a_worse_agent_is_red_with_both_answers(tmp_path: Path, name: str) -> None:
    needs(name)
    change = AGENTS[name]("The capital is Rome.")
    with opened(tmp_path, base(name), change) as gate:
        done = gate.finish(timeout=600)

        assert done.code == 1, done.log
        regressed = [test for test, change in gate.changes().items() if change == "regressed"]
        test, place = REGRESSED[name]
        assert regressed == [test]
        assert gate.annotations() == [("warning", *place)]
        for text in ("The capital is Rome.", "The capital is Paris."):
            assert text in gate.comments()[0]


@pytest.mark.parametrize("name", BASES)
def test_pull_request__an_agent_that_is_as_good_is_green(tmp_path: Path, name: str) -> None:
    needs(name)
    with opened(tmp_path, base(name), AGENTS[name]("Its capital is Paris.")) as gate:
        done = gate.finish(timeout=600)

        assert done.code == 0, done.log
        assert "regressed" not in gate.changes().values()


PLUGIN = "plugins/greeter"
CLAUDE = {
    "name": "plugins",
    "results": "claude",
    "suites": ["**/.claude-plugin/plugin.json"],
    "env": ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_MAX_RETRIES"],
}


def plugin() -> dict[str, str]:
    """Two cases of the recorded plugin."""
    names = ("greets/prompt.md", "greets/graders/says.md", "judged/prompt.md")
    paths = [f"evals/{name}" for name in (*names, "judged/graders/polite.md")]
    paths += [".claude-plugin/plugin.json", "skills/greet/SKILL.md"]
    return {f"{PLUGIN}/{path}": (DATA / "claude" / path).read_text() for path in paths}


@pytest.mark.parametrize(
    ("edit", "code", "change"),
    [
        (("Good day", "Hello"), 1, {"greets": "regressed"}),
        (("of the person", "of that person"), 0, {}),
    ],
    ids=["another greeting", "another word"],
)
def test_pull_request__that_edits_the_skill_of_a_plugin(
    tmp_path: Path, edit: tuple[str, str], code: int, change: dict[str, str]
) -> None:
    needs("claude")
    path, files = f"{PLUGIN}/skills/greet/SKILL.md", plugin()
    base = {**files, **rules(CLAUDE)}
    with (
        plugin_models() as server,
        opened(tmp_path, base, {path: files[path].replace(*edit)}) as gate,
    ):
        variables = {**VARIABLES, "ANTHROPIC_BASE_URL": server.url}
        done = gate.finish(timeout=600, env=variables, inputs={"env": ",".join(CLAUDE["env"])})

        assert done.code == code, done.log
        assert gate.changes() == change
        if code:
            assert gate.annotations() == [("warning", f"{PLUGIN}/evals/greets/prompt.md", 1)]
            for text in ("Hello, Ada.", "Good day, Ada."):
                assert text in gate.comments()[0]


def test_pull_request__that_breaks_a_case_is_inconclusive(tmp_path: Path) -> None:
    """Claude Code leaves a case without a grader out of its results."""
    needs("claude")
    with (
        plugin_models() as server,
        opened(
            tmp_path,
            {**plugin(), **rules(CLAUDE)},
            {f"{PLUGIN}/evals/greets/graders/says.md": None},
        ) as gate,
    ):
        variables = {**VARIABLES, "ANTHROPIC_BASE_URL": server.url}
        done = gate.finish(timeout=600, env=variables, inputs={"env": ",".join(CLAUDE["env"])})

        assert done.code == 3, done.log
        assert f"it has no result of `{PLUGIN}/evals/greets`" in gate.comments()[0]


def test_pull_request__an_outage_of_the_api_blames_no_test(tmp_path: Path) -> None:
    needs("claude")
    path, files = f"{PLUGIN}/skills/greet/SKILL.md", plugin()
    base = {**files, **rules(CLAUDE)}
    with opened(tmp_path, base, {path: files[path].replace("Good day", "Hello")}) as gate:
        variables = {**VARIABLES, "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
        done = gate.finish(timeout=600, env=variables, inputs={"env": ",".join(CLAUDE["env"])})

        assert done.code == 3, done.log
        assert "ECONNREFUSED" in gate.comments()[0]
