"""The environment of child processes: the variables that a program of the repository may read."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentevals_action.system import observer
from agentevals_action.system.files.packages import PackageFolder, own_packages
from agentevals_action.system.isolation import NO_ISOLATION, ChildUser, Isolation
from agentevals_action.system.program import Program, all_words
from agentevals_action.system.redaction import MIN_LENGTH, looks_secret

#: The runner's tokens, the action's inputs, and the files by which a step controls later steps.
_NEVER_PASSED = re.compile(
    r"INPUT_.*|ACTIONS_.*|GITHUB_(TOKEN|ENV|OUTPUT|PATH|STATE|STEP_SUMMARY)", re.DOTALL
)
#: The variable of judges that names the tree in which the programs of their side run.
CHECKOUT_VARIABLE = "AGENTEVALS_CHECKOUT"
#: The variable with pytest's plug-ins, and ours.
_PLUGINS, _OBSERVER = "PYTEST_PLUGINS", "agentevals_imports"
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
    have no value. `packages` are those that the programs of each tree find first."""

    environment: Mapping[str, str]
    allowed: Mapping[str, str] = field(default_factory=dict)
    withheld: tuple[str, ...] = ()
    isolation: Isolation = NO_ISOLATION
    unset: tuple[str, ...] = ()
    packages: Mapping[Path, Sequence[PackageFolder]] = field(default_factory=dict)

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

    def workspace(self, tree: Path) -> dict[str, str]:
        """The variable that names the workspace, for a program of a tree: that of base is another
        tree than the workspace."""
        name = "GITHUB_WORKSPACE"
        return {name: str(tree)} if name in self.environment else {}

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

    def with_packages(
        self, program: Program, root: Path, tree: Path, start: Path, results: Path | None = None
    ) -> Program:
        """A program that finds the Python packages of a checkout (`root`) first, whatever is
        installed. It runs in `tree`, the checkout or the judge tree, and belongs to the folder
        `start`. pytest writes into `results` which module it imported from elsewhere."""
        if not (packages := self.packages.get(root)):
            return program
        old, folder = program.environment, program.folder
        words = [str(folder / word) if "/" in word else word for word in all_words(program.words)]
        first, modules = own_packages(packages, tree, start, words, old.get("PATH", os.defpath))
        facts = {"trees": [str(tree), str(root)], "modules": modules, "results": str(results)}
        folders, plugins = [*map(str, first), old.get("PYTHONPATH")], old.get(_PLUGINS)
        variables = {"AGENTEVALS_PACKAGES": json.dumps(facts)}
        if results:
            folders.append(str(Path(observer.__file__).parent))
            variables[_PLUGINS] = ",".join(filter(None, (plugins, _OBSERVER)))
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
        return replace(program, environment={**old, **variables})


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
