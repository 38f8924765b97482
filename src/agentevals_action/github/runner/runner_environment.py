"""The facts that GitHub's runner gives about the event, from its environment variables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from agentevals_action.errors import InvalidInput
from agentevals_action.validation.json_values import parse_json

_Url = Annotated[
    str, Field(pattern=r"^https?://[^\s]+$"), AfterValidator(lambda url: url.rstrip("/"))
]


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("not an absolute path")
    return path


_EVENT_HINT = "the runner writes it and names it in GITHUB_EVENT_PATH"


class RunnerEnvironment(BaseModel):
    """The variables that the runner or the step sets. URLs have no slash at their end."""

    model_config = ConfigDict(frozen=True, validate_by_name=True)

    event_name: str = Field(alias="GITHUB_EVENT_NAME", pattern=r"^[a-z_]+$")
    event_path: Path | None = Field(None, alias="GITHUB_EVENT_PATH")
    repository: str = Field(alias="GITHUB_REPOSITORY", pattern=r"^[^\s/]+/[^\s/]+$")
    sha: str = Field(alias="GITHUB_SHA", pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")
    ref: str = Field("", alias="GITHUB_REF", pattern=r"^[^\s]*$")
    workspace: Annotated[Path, AfterValidator(_absolute)] = Field(alias="GITHUB_WORKSPACE")
    api_url: _Url = Field("https://api.github.com", alias="GITHUB_API_URL")
    server_url: _Url = Field("https://github.com", alias="GITHUB_SERVER_URL")
    run_id: int = Field(0, alias="GITHUB_RUN_ID", ge=0)
    run_attempt: int = Field(1, alias="GITHUB_RUN_ATTEMPT", ge=0)
    actor: str = Field("", alias="GITHUB_ACTOR")
    output_path: Path | None = Field(None, alias="GITHUB_OUTPUT")
    summary_path: Path | None = Field(None, alias="GITHUB_STEP_SUMMARY")
    results_url: str = Field("", alias="ACTIONS_RESULTS_URL")
    runtime_token: str = Field("", alias="ACTIONS_RUNTIME_TOKEN", repr=False)
    #: The trusted authorities; empty for those of the libraries.
    authorities: str = Field("", alias="SSL_CERT_FILE")

    @property
    def run_url(self) -> str | None:
        """The page of this run and attempt, None outside of a run."""
        run = f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}"
        return f"{run}/attempts/{self.run_attempt}" if self.run_id else None

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Self:
        """Reads the variables; InvalidInput names every one that is missing or not valid."""
        names = [str(field.alias) for field in cls.model_fields.values()]
        given = {name: environ[name] for name in names if environ.get(name)}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            errors = [
                f"the variable {detail['loc'][0]} is "
                + ("missing" if detail["type"] == "missing" else "not valid")
                for detail in error.errors()
            ]
        raise InvalidInput(
            "the environment is not that of a GitHub runner",
            "GitHub Actions runs the command `action`; "
            "on your own machine use `review --base REV` or `run`",
            errors=errors,
        )

    def payload(self) -> Mapping[str, Any]:
        """The event as GitHub sent it; InvalidInput when the file is missing or holds no JSON
        object."""
        if self.event_path is None:
            raise InvalidInput("there is no event file", _EVENT_HINT)
        try:
            payload = parse_json(self.event_path.read_bytes())
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"the event file {self.event_path} cannot be read: {error}", _EVENT_HINT
            ) from error
        if not isinstance(payload, dict):
            raise InvalidInput(f"the event file {self.event_path} holds no object", _EVENT_HINT)
        return payload
