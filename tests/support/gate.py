"""A pull request on GitHub, and the jobs of its workflow."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import payloads
from tests.support.github_server import GitHubServer
from tests.support.job import Job
from tests.support.repositories import Files, PullRequest, pull_request

NUMBER = 7


class Gate:
    """A pull request; `announced` is what GitHub knows of it, `runs` the number of its last run,
    `inputs` are those of all its runs."""

    def __init__(
        self, folder: Path, server: GitHubServer, pull: PullRequest, inputs: Mapping[str, str]
    ) -> None:
        self.folder, self.server, self.pull, self.inputs = folder, server, pull, inputs
        self.runs = 1000
        self.announced = server.add_pull(NUMBER, pull.head, pull.main)

    def push(self, files: Files) -> None:
        """Another commit on the pull request's branch."""
        origin = self.pull.origin
        origin.git("checkout", "--quiet", "feature")
        head = origin.commit("another", files)
        merge = origin.merge_for_pull(self.pull.main, head)
        origin.git("checkout", "--quiet", "main")
        self.pull = PullRequest(origin, self.pull.base, self.pull.main, head, merge)
        self.announced.head_sha = head

    def job(
        self,
        name: str = "pull_request",
        event: Mapping[str, Any] | None = None,
        sha: str | None = None,
        *,
        depth: int = 2,
        inputs: Mapping[str, str] | None = None,
        **facts: Any,
    ) -> Job:
        """The next run of the workflow, by default for the pull request, on a fresh checkout of
        `sha`, by default the merge commit. The base is there, unless the depth is 1: then the
        action fetches it."""
        self.runs += 1
        folder = self.folder / str(self.runs)
        sha = sha or self.pull.merge
        if event is None:
            event = payloads.pull_request_event(self.pull.head, self.pull.main)
        workspace = self.pull.checkout(folder / "workspace", sha, depth).path
        return Job(
            workspace,
            self.server,
            event,
            sha,
            folder / "runner",
            name,
            self.runs,
            inputs={**self.inputs, **(inputs or {})},
            **facts,
        )

    def comments(self) -> list[str]:
        """Our comments that are not minimised."""
        return [comment.body for comment in self.server.comments if not comment.minimised]

    def conclusions(self) -> list[tuple[str, str | None]]:
        """The head and the conclusion of each check run."""
        return [(check.head_sha, check.conclusion) for check in self.server.check_runs]


@contextmanager
def opened(
    folder: Path,
    base: Files,
    change: Files,
    since: Files | None = None,
    inputs: Mapping[str, str] | None = None,
) -> Iterator[Gate]:
    """A pull request that changes the files of `base`; main got those of `since` meanwhile."""
    pull = pull_request(folder / "origin", base, change, since)
    with GitHubServer() as server:
        yield Gate(folder, server, pull, inputs or {})
