"""`action.yml` says what the settings read and what the action writes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from agentevals_action.errors import InvalidInput
from agentevals_action.github.claimed_run import ARTIFACT
from agentevals_action.review.inputs.request import SHARDS
from agentevals_action.settings import INPUTS, Settings

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def test_action_yml__its_inputs_are_those_of_the_settings_in_their_order() -> None:
    assert list(ACTION["inputs"]) == list(INPUTS)


@pytest.mark.parametrize("name", INPUTS)
def test_action_yml__an_input_as_in_the_table(name: str) -> None:
    assert ACTION["inputs"][name] == {
        "description": INPUTS[name].description,
        "required": False,
        "default": INPUTS[name].default,
    }


def test_action_yml__its_defaults_are_the_settings_own() -> None:
    """The runner hands every default over as text."""
    environ = {
        f"INPUT_{name.upper()}": described["default"]
        for name, described in ACTION["inputs"].items()
        if name != "github-token"
    }
    assert Settings.from_environ(environ) == Settings()


def test_action_yml__runs_the_image() -> None:
    assert ACTION["runs"] == {"using": "docker", "image": "Dockerfile"}
    assert set(ACTION["branding"]) == {"icon", "color"}


def sharded_jobs() -> dict[str, Any]:
    text = (ROOT / ".github/workflows/sharded.yml").read_text(encoding="utf-8")
    jobs: dict[str, Any] = yaml.safe_load(text)["jobs"]
    return jobs


def test_sharded_workflow__merges_what_the_shards_uploaded() -> None:
    jobs = sharded_jobs()
    upload, download = jobs["shard"]["steps"][-1], jobs["merge"]["steps"][1]
    assert upload["with"]["name"].startswith(download["with"]["pattern"].removesuffix("*"))
    assert upload["with"]["path"] == INPUTS["report-dir"].default
    assert download["with"]["path"] == f"{INPUTS['report-dir'].default}/{SHARDS}"
    assert jobs["merge"]["if"] == upload["if"] == "${{ !cancelled() }}"


def test_sharded_workflow__leaves_the_report_that_the_trusted_phase_reads() -> None:
    """Accident: a fork's pull request on several machines leaves no artifact."""
    upload = sharded_jobs()["merge"]["steps"][-1]
    assert upload["uses"].startswith("actions/upload-artifact@")
    assert upload["if"] == "${{ !cancelled() }}"
    assert upload["with"]["name"] == ARTIFACT


def test_sharded_workflow__uses_one_version_and_known_inputs() -> None:
    steps = [
        next(step for step in job["steps"] if "agentevals-action@" in step["uses"])
        for job in sharded_jobs().values()
    ]
    assert all(step["with"].keys() <= INPUTS.keys() for step in steps)
    assert len({step["uses"] for step in steps}) == 1
    assert "env" not in steps[1]  # no key where nothing needs one


@pytest.mark.parametrize("folder", [".", "composite"])
def test_action_types__name_every_input_and_output(folder: str) -> None:
    types = yaml.safe_load((ROOT / folder / "action-types.yml").read_text(encoding="utf-8"))
    assert list(types["inputs"]) == list(INPUTS)
    assert list(types["outputs"]) == list(ACTION["outputs"])


@pytest.mark.parametrize("name", INPUTS)
def test_action_types__an_input_has_the_values_of_its_type(name: str) -> None:
    types = yaml.safe_load((ROOT / "action-types.yml").read_text(encoding="utf-8"))
    typing = types["inputs"][name]
    item = typing.get("list-item", typing)
    examples = {"boolean": ["true"], "integer": ["3"], "float": ["0.5" if name == "alpha" else "1"]}
    for value in item.get("allowed-values", examples.get(item["type"], [])):
        needed = {"INPUT_CACHE-DIR": "replies", "INPUT_BASELINE-FILE": "evals/base.jsonl"}
        Settings.from_environ({**needed, f"INPUT_{name.upper()}": value})
    if item["type"] != "string":
        with pytest.raises(InvalidInput):
            Settings.from_environ({f"INPUT_{name.upper()}": "no-such-value"})
