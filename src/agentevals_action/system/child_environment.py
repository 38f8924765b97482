"""The environment of child processes: the variables that a program of the repository may read."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentevals_action.system.isolation import NO_ISOLATION, ChildUser, Isolation
from agentevals_action.system.program import Program
from agentevals_action.system.redaction import MIN_LENGTH, looks_secret

#: The runner's tokens, the action's inputs, and the files by which a step controls later steps.
_NEVER_PASSED = re.compile(
    r"INPUT_.*|ACTIONS_.*|GITHUB_(TOKEN|ENV|OUTPUT|PATH|STATE|STEP_SUMMARY)", re.DOTALL
)
#: The variable of judges that names the tree in which the programs of their side run.
CHECKOUT_VARIABLE = "AGENTEVALS_CHECKOUT"
#: Every child sees these. `HOME` is needed for the configuration of tools; a child can therefore
#: read what is in it (`.netrc`, `.ssh`, a login), and `.git/config`, where a checkout keeps its
#: token by default.
_COMMON = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_.*|TZ|TERM|TMPDIR|TEMP|TMP", re.DOTALL
)
_CI_FACTS = re.compile(
    r"CI|RUNNER_(OS|ARCH)|GITHUB_(ACTIONS|ACTOR|WORKFLOW|JOB|REPOSITORY|REPOSITORY_OWNER|SHA|REF"
    r"|REF_NAME|REF_TYPE|BASE_REF|HEAD_REF|EVENT_NAME|RUN_ID|RUN_NUMBER|RUN_ATTEMPT|SERVER_URL"
    r"|API_URL|GRAPHQL_URL|WORKSPACE)"
)


@dataclass(frozen=True)
class ChildContext:
    """How the programs of a run start: all see `environment`, agents also the variables that the
    workflow passes on (`allowed`). `withheld` are the names of the credentials that no program
    sees. `isolation` gives their users. `unset` are the names that the workflow passes on and that
    have no value."""

    environment: Mapping[str, str]
    allowed: Mapping[str, str] = field(default_factory=dict)
    withheld: tuple[str, ...] = ()
    isolation: Isolation = NO_ISOLATION
    unset: tuple[str, ...] = ()

    @classmethod
    def from_environ(
        cls, environ: Mapping[str, str], names: Sequence[str], isolation: Isolation = NO_ISOLATION
    ) -> "ChildContext":
        """The context of programs to which the workflow passes the variables of these names."""
        environment, withheld = scrub(environ, names)
        allowed = {name: environ[name] for name in names if name in environ}
        unset = tuple(name for name in names if name not in environ)
        return cls(environment, allowed, withheld, isolation, unset)

    @property
    def hint(self) -> str:
        """The advice for a program that may need variables which it does not see; empty without
        any."""
        names = ", ".join(self.withheld)
        advice = f"variables withheld from it: {names}; name those it needs in the input `env`"
        return advice if names else ""

    def program(
        self,
        words: Sequence[str],
        folder: Path,
        user: ChildUser | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> Program:
        """A program that sees the environment and more `variables`."""
        environment = {**self.environment, **(variables or {})}
        return Program(tuple(words), folder, environment, user, self.hint)


def is_never_passed(name: str) -> bool:
    """Whether a variable is never passed on, whoever names it."""
    return bool(_NEVER_PASSED.fullmatch(name))


def scrub(
    environ: Mapping[str, str], allowed: Sequence[str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The environment that a child may see, and the names of credentials that were withheld (naming
    them in `allowed` would pass them).

    A child sees the common variables, facts of the CI that contain no secret, and those that
    `allowed` names; never the runner's own."""
    secrets = [
        value for name, value in environ.items() if looks_secret(name) and len(value) >= MIN_LENGTH
    ]
    environment, withheld = {}, []
    for name, value in environ.items():
        if is_never_passed(name):
            continue
        fact = _CI_FACTS.fullmatch(name) and not any(secret in value for secret in secrets)
        if name in allowed or _COMMON.fullmatch(name) or fact:
            environment[name] = value
        elif looks_secret(name):
            withheld.append(name)
    return environment, tuple(sorted(withheld))
