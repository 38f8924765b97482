"""The plan and the fragments that the jobs of this run uploaded as artifacts."""

from collections.abc import Mapping
from dataclasses import dataclass

from github.Artifact import Artifact

from agentevals_action.errors import HostError, InvalidInput
from agentevals_action.github.api import GitHubApi, as_host_errors
from agentevals_action.github.artifact_archives import read_archive

#: Names of artifacts: of the plan, and the first part of those of the fragments.
PLAN_ARTIFACT = "agentevals-plan"
SHARD_PREFIX = "agentevals-shard-"
#: Bytes of all archives, which are in memory.
_TOTAL = 512 << 20


@dataclass(frozen=True)
class ShardArtifacts:
    """ZIPs by the name of the artifact, the plan's among them, and a sentence for each artifact
    that could not be downloaded."""

    archives: Mapping[str, bytes]
    problems: tuple[str, ...]


def read_shard_artifacts(api: GitHubApi, run: int) -> ShardArtifacts:
    """The artifacts of all attempts of this run. HostError when GitHub does not give the plan, and
    InvalidInput when there is none.

    Fragments from before the plan are of an earlier plan. Attack: an artifact of another run."""
    with as_host_errors("the artifacts of this run could not be listed", "actions: read"):
        listed = list(api.repository.get_workflow_run(run).get_artifacts())
        own = [artifact for artifact in listed if artifact.workflow_run.id == run]
    plans = [one for one in own if one.name == PLAN_ARTIFACT]
    if not plans:
        raise InvalidInput(
            f"this run has no artifact `{PLAN_ARTIFACT}`",
            "upload the files of `mode: plan` under this name in the job that plans",
        )
    plan = max(plans, key=lambda one: one.id)
    archives, problems = {PLAN_ARTIFACT: read_archive(api, plan)}, []
    for artifact in own:
        if not artifact.name.startswith(SHARD_PREFIX) or _is_before(artifact, plan):
            continue
        if sum(map(len, archives.values())) + artifact.size_in_bytes > _TOTAL:
            problems.append(
                f"the artifact `{artifact.name}` is not used: all are over {_TOTAL >> 20} MiB"
            )
            continue
        try:
            content = read_archive(api, artifact)
        except HostError as error:
            problems.append(str(error))
        else:
            # Attempts may have uploaded the same name.
            same = f"{artifact.name}#{artifact.id}"
            archives[same if artifact.name in archives else artifact.name] = content
    return ShardArtifacts(archives, tuple(problems))


def _is_before(artifact: Artifact, plan: Artifact) -> bool:
    times = artifact.created_at, plan.created_at
    return times[0] is not None and times[1] is not None and times[0] < times[1]
