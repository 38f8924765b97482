"""The entries of runners for the files of other programs in a repository."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from agentevals_action.suites.proposed_runners import propose_runners
from tests.support import suites

DATA = Path(__file__).resolve().parents[2] / "data"
CASES = yaml.safe_load((DATA / "proposed_runners.yaml").read_text("utf-8"))


@pytest.mark.parametrize("case", [pytest.param(case, id=case["case"]) for case in CASES])
def test_propose__by_names_and_contents(tmp_path: Path, case: dict[str, Any]) -> None:
    suites.write(tmp_path, case["files"])

    found = propose_runners(tmp_path, [*case["files"], "evals/deleted.py"])

    assert [
        {name: getattr(entry, name) for name in ("results", "suites", "env", "install")}
        for entry in found
    ] == [
        {**entry, **{name: tuple(entry[name]) for name in ("suites", "env")}}
        for entry in case["entries"]
    ]


def test_propose__a_link_out_of_the_repository_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "outside.yaml").write_text("providers: [openai:gpt]\n")
    root = tmp_path / "root"
    root.mkdir()
    (root / "promptfooconfig.yaml").symlink_to("../outside.yaml")

    assert not propose_runners(root, ["promptfooconfig.yaml"])
