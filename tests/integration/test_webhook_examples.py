"""Real payloads of GitHub's events, from `@octokit/webhooks-examples`, are understood."""

import json
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.github.claimed_run import read_completed
from agentevals_action.github.events import Event, job_for
from agentevals_action.github.run_requests import RunRequest, read_request
from agentevals_action.settings import Settings

pytestmark = pytest.mark.slow
Examples = Mapping[str, Sequence[dict[str, Any]]]


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Examples:
    """The payloads by the name of their event; skips where the package cannot be downloaded."""
    folder = tmp_path_factory.mktemp("npm")
    command = ["npm", "pack", "--silent", "@octokit/webhooks-examples@7.6.1"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=100)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"npm cannot download the package: {error}")
    (archive,) = Path(folder).glob("*.tgz")
    with tarfile.open(archive) as package:
        file = package.extractfile("package/api.github.com/index.json")
        assert file
        return {event["name"]: event["examples"] for event in json.load(file)}


def test_request__is_read_from_a_real_payload(examples: Examples) -> None:
    found = [payload for payload in examples["issue_comment"] if payload["action"] != "deleted"]
    assert found
    for payload in found:
        request = RunRequest.model_validate(payload)
        comment = payload["comment"]
        assert (request.login, request.body) == (comment["user"]["login"], comment["body"])
        changed = comment["updated_at"] != comment["created_at"]
        assert request.is_edited == (payload["action"] == "edited" or changed)
        assert read_request(payload) is None


def test_completed__is_read_from_a_real_payload(examples: Examples) -> None:
    for payload in examples["workflow_run"]:
        completed = read_completed(payload)
        assert completed.id == payload["workflow_run"]["id"]
        assert completed.attempt == payload["workflow_run"]["run_attempt"]


def test_pull_request__is_read_from_a_real_payload(examples: Examples) -> None:
    for payload in examples["pull_request"]:
        if payload["action"] != "closed":
            job = job_for(Event("pull_request", payload, "a" * 40), Settings())
            assert job.head_sha == payload["pull_request"]["head"]["sha"]
