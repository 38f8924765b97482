"""`action.yml` says what the settings read and what the action writes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from agentevals_action.github.first_phase import ARTIFACT
from agentevals_action.github.run_artifacts import PLAN_ARTIFACT, SHARD_PREFIX
from agentevals_action.review.sharding.plan import digest_inputs
from agentevals_action.settings import INPUTS, OUTPUTS, Settings

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
        f"INPUT_{name.upper()}": one["default"]
        for name, one in ACTION["inputs"].items()
        if name != "github-token"
    }
    assert Settings.from_environ(environ) == Settings()


def test_action_yml__its_outputs() -> None:
    assert ACTION["outputs"] == {
        name: {"description": description} for name, description in OUTPUTS.items()
    }


def test_action_yml__its_title_is_free_for_the_marketplace() -> None:
    """The Marketplace rejects the name of an organisation; the check's name stays."""
    assert ACTION["name"] not in ("agentevals", "agentevals-action")
    assert INPUTS["check-name"].default == "agentevals"


def test_action_yml__runs_the_image() -> None:
    assert ACTION["runs"] == {"using": "docker", "image": "Dockerfile"}
    assert set(ACTION["branding"]) == {"icon", "color"}


def sharded_jobs() -> dict[str, Any]:
    text = (ROOT / ".github/workflows/sharded.yml").read_text(encoding="utf-8")
    jobs: dict[str, Any] = yaml.safe_load(text)["jobs"]
    return jobs


def test_sharded_workflow__merges_what_was_uploaded_after_a_failed_upload() -> None:
    """Accident: the upload of the plan fails, and nothing writes the check run.
    Attack: a shard's artifact brings a file that replaces the plan where all are unpacked."""
    jobs = sharded_jobs()
    merge = jobs["merge"]
    assert jobs["shard"]["if"] == "${{ needs.plan.outputs.matrix }}"
    assert merge["if"] == "${{ !cancelled() && needs.plan.outputs.matrix }}"
    assert merge["permissions"]["actions"] == "read"
    assert [step for step in merge["steps"] if "download-artifact" in step["uses"]] == []
    uploads = [jobs[name]["steps"][-1]["with"]["name"] for name in ("plan", "shard")]
    assert uploads[0] == PLAN_ARTIFACT
    assert uploads[1].startswith(SHARD_PREFIX)


def test_sharded_workflow__leaves_the_report_that_the_trusted_phase_reads() -> None:
    """Accident: a fork's pull request on several machines leaves no artifact, or one with files
    that are refused."""
    upload = sharded_jobs()["merge"]["steps"][-1]
    assert upload["uses"].startswith("actions/upload-artifact@")
    assert upload["if"] == "${{ !cancelled() }}"
    assert upload["with"]["name"] == ARTIFACT
    assert upload["with"]["path"] == "agentevals-report"


def test_sharded_workflow__gives_every_job_the_inputs_that_the_plan_compares() -> None:
    jobs = sharded_jobs()
    steps = {
        name: next(step for step in job["steps"] if "agentevals-action@" in step["uses"])
        for name, job in jobs.items()
    }
    given = {name: step["with"] for name, step in steps.items()}
    for inputs in given.values():
        assert inputs.keys() <= INPUTS.keys()
    compared = {name.replace("_", "-") for name in digest_inputs(Settings())}
    shared = [
        {name: value for name, value in inputs.items() if name in compared}
        for inputs in given.values()
    ]
    assert shared[0]
    assert shared == [shared[0]] * 3
    assert "env" not in steps["plan"]  # no key where nothing needs one
    assert steps["shard"]["env"] == steps["merge"]["env"]
    assert len({step["uses"] for step in steps.values()}) == 1
