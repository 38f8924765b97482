"""The page about agents that are packages: what its table builds and starts in each tree is green as
it is, red when a package that the agent uses breaks, and inconclusive when it does not build."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import command
from tests.support.repositories import Files, Repository

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/guides/packages.md").read_text("utf-8")
AGENTS: dict[str, Any] = yaml.safe_load((ROOT / "tests/data/packaged_agents.yaml").read_text())
SUITE = """\
name: shop
tests:
  - id: refund-window
    input: Can I return shoes after three weeks?
    assert: [{type: contains, value: 30 days}]
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", AGENTS)
def test_build__in_each_tree_is_red_when_a_package_breaks(name: str, tmp_path: Path) -> None:
    agent, row = AGENTS[name], re.search(rf"^\| {name} \| `(.+?)` \| `(.+?)` \|", PAGE, re.M)
    if shutil.which(agent["tool"]) is None:
        pytest.skip(f"needs {agent['tool']}")
    assert row
    target = f"targets: [{{name: default, provider: cli, command: {row[2]}, cwd: /}}]\n"
    base: Files = {"evals/EVAL.yaml": SUITE, ".agentv/targets.yaml": target}
    repository = Repository.create(tmp_path / "repository", {**agent["files"], **base})
    repository.git("checkout", "--quiet", "-b", "change")
    answer, codes = agent["files"][agent["answer"]], []
    # The last one does not build, or ends at once: the older build must not answer.
    for change in (f"{answer}\n", answer.replace("30 days", "Pardon?"), answer.replace('"', "", 1)):
        repository.commit("change", {agent["answer"]: change})
        environment = {**command.environment(), "HOME": os.environ["HOME"]}
        options = ("review", "--base", "main", "--prepare", row[1])
        codes.append(command.finish(repository.path, options, environment).code)
    assert codes == [0, 1, 3]
