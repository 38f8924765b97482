"""The upload of the report page over real HTTP, and the links to it."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentevals_action.errors import HostError
from agentevals_action.github.artifacts import ArtifactService
from agentevals_action.github.report_artifact import report_name
from tests.support.artifact_server import SIGNATURE, ArtifactServer, token
from tests.support.gate import Gate, opened
from tests.support.stand_in import InjectedFailure

PAGE = "<!doctype html><title>Ä report</title>".encode()
NAME = "agentevals-report-agentevals-1000-1.html"
CREATE, PUT, FINALIZE = "CreateArtifact", "PUT", "FinalizeArtifact"


def upload(server: ArtifactServer, seconds: float = 60.0) -> int:
    service = ArtifactService(
        f"{server.url}/results/", server.token, seconds, first_wait_seconds=0.01
    )
    return asyncio.run(service.upload(NAME, PAGE, "text/html"))


def refused(server: ArtifactServer, seconds: float = 60.0) -> str:
    with pytest.raises(HostError) as caught:
        upload(server, seconds)
    sentence = caught.value.sentence
    assert server.token not in sentence
    assert SIGNATURE not in sentence
    return sentence


def test_upload__only_the_service_gets_the_token() -> None:
    with ArtifactServer() as server:
        upload(server)
    with_token = [
        request.route.rpartition("/")[2]
        for request in server.requests
        if any(server.token in value for value in request.headers.values())
    ]
    assert with_token == [CREATE, FINALIZE]


@pytest.mark.parametrize(("route", "status"), [(CREATE, 0), (PUT, 503), (FINALIZE, 429)])
def test_upload__is_repeated_while_the_service_is_unavailable(route: str, status: int) -> None:
    with ArtifactServer(InjectedFailure(route, status)) as server:
        assert upload(server) == 4001
    assert len(server.routes(route)) == 2
    assert server.artifacts[NAME].content == PAGE


@pytest.mark.parametrize("bad", ["", "abc", "a.b.c", "a.e30.c", token("Actions.Results:only-run")])
def test_upload__token_without_ids_is_refused_before_a_request(bad: str) -> None:
    with ArtifactServer() as server:
        service = ArtifactService(server.url, bad)
        with pytest.raises(HostError, match="does not name the run and the job"):
            asyncio.run(service.upload(NAME, PAGE, "text/html"))
    assert server.requests == []


def test_upload__name_that_exists_states_what_to_change() -> None:
    with ArtifactServer() as server:
        upload(server)
        sentence = refused(server)
    assert sentence == (
        "the reply to CreateArtifact is 409, Conflict: an artifact with this name already exists "
        "on the workflow run; give each gate of a workflow its own `comment-id`"
    )


def test_upload__full_storage_states_what_to_do() -> None:
    body = {"msg": "insufficient usage to create artifact"}
    with ArtifactServer(InjectedFailure(CREATE, 403, body=body)) as server:
        assert "delete old artifacts" in refused(server)


def test_upload__refused_content_is_not_finalized() -> None:
    with ArtifactServer(InjectedFailure(PUT, 403, 9, body={"msg": "denied"})) as server:
        assert refused(server) == "the reply to the upload is 403, denied"
    assert server.routes(FINALIZE) == []


def test_name__is_that_of_the_run_the_attempt_and_the_gate() -> None:
    names = {
        report_name(gate, run, attempt)
        for gate in ("a", "b")
        for run in (1, 2)
        for attempt in (1, 2)
    }
    assert len(names) == 8


# The whole action

_FILES = {
    "evals/EVAL.yaml": (
        "name: support\n"
        "tests:\n"
        "  - id: opening hours?\n"
        "    input: hours\n"
        "    assert: [{type: contains, value: nine, required: true}]\n"
        "  - id: token\n"
        "    input: token\n"
        "    assert: [{type: contains, value: 'False'}]\n"
    ),
    ".agentv/targets.yaml": (
        "targets:\n  - {name: default, provider: cli, command: [python3, ../agent.py]}\n"
    ),
}
ARTIFACT = "https://github.com/acme/agent/actions/runs/1000/artifacts/4001"
TEST = f"{ARTIFACT}#test/evals%2FEVAL.yaml/opening%20hours%3F"


def _agent(answer: str) -> dict[str, str]:
    code = (
        "import os, sys\n"
        f"print({answer!r}, 'ACTIONS_RUNTIME_TOKEN' in os.environ or 'ACTIONS_RESULTS_URL' in os.environ)\n"
    )
    return {"agent.py": code}


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    files = {**_FILES, **_agent("at nine")}
    with opened(tmp_path, files, _agent("at noon"), inputs={"confirm": "0"}) as gate:
        gate.runs = 999  # the next run has the number of the artifact's name
        yield gate


def test_action__uploads_the_page_and_links_to_it(gate: Gate) -> None:
    with ArtifactServer() as server:
        job = gate.job(env=server.variables)
        done = job.finish()
    assert done.code == 1, done.log
    (comment,), (check,) = gate.server.comments, gate.server.check_runs
    report = job.workspace / "agentevals-report"
    page = (report / "report.html").read_text(encoding="utf-8")
    in_check = check.summary or ""
    header = re.findall('<p class="small">(.*)</p>', page)[0]
    shown = re.sub("<[^>]*>", "", header)
    assert re.fullmatch(
        r"acme/agent · pull request #\d+ · branch feature · \d{4}-\d\d-\d\d \d\d:\d\d UTC", shown
    )
    artifact = server.artifacts[NAME]
    assert (artifact.content or b"").decode() == page
    assert done.outputs["report-url"] == ARTIFACT
    link = f"**[Open the report]({ARTIFACT})**"
    # The first link of each text.
    for text in (comment.body, done.summary):
        assert text.index(link) < text.index("| Suite |")
        assert text.index("](") == text.index(f"]({ARTIFACT})")
        assert f"[`opening hours?`]({TEST})" in text
    assert check.details_url == ARTIFACT
    assert in_check.startswith(link)
    (annotation,) = check.annotations
    assert annotation["message"].endswith(f"\nIn the report: {TEST}")
    assert ARTIFACT in done.log
    for text in (done.log, done.summary, comment.body, in_check, page):
        assert server.token not in text
        assert SIGNATURE not in text
    results = (report / "results.jsonl").read_text()
    answers = [json.loads(line)["candidateAnswer"] for line in results.splitlines()]
    assert answers == ["at noon False", "at noon False"]


def test_action__failed_upload_is_a_warning(gate: Gate) -> None:
    with ArtifactServer(InjectedFailure(PUT, 403, 9)) as server:
        done = gate.job(env=server.variables).finish()
    (comment,), (check,) = gate.server.comments, gate.server.check_runs
    in_check = check.summary or ""
    assert (done.code, done.outputs["outcome"], done.outputs["report-url"]) == (1, "failed", "")
    problem = "The report page could not be uploaded: the reply to the upload is 403"
    assert f"::warning::{problem}; `upload-report: false` turns the upload off." in done.log
    for text in (comment.body, done.summary, in_check):
        assert problem in text
        assert "Open the report" not in text
    assert check.details_url == "https://github.com/acme/agent/actions/runs/1000/attempts/1"


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        (
            {"GITHUB_SERVER_URL": "https://github.example.com"},
            "report: not uploaded, because GitHub Enterprise Server has no artifacts that open in "
            "the browser",
        ),
        (
            {"ACTIONS_RUNTIME_TOKEN": ""},
            "report: not uploaded, because the runner gives this step no ACTIONS_RUNTIME_TOKEN and "
            "ACTIONS_RESULTS_URL",
        ),
        ({"INPUT_UPLOAD-REPORT": "false"}, ""),
    ],
)
def test_action__without_upload_states_why_in_the_log(
    gate: Gate, variables: dict[str, str], reason: str
) -> None:
    with ArtifactServer() as server:
        done = gate.job(env={**server.variables, **variables}).finish()
    (comment,) = gate.server.comments
    assert (done.code, done.outputs["report-url"], server.requests) == (1, "", [])
    found = [line for line in done.log.splitlines() if line.startswith("report: not uploaded")]
    assert found == ([reason] if reason else [])
    assert "could not be uploaded" not in comment.body
