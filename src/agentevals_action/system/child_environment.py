"""The environment of children: what a stranger's program may see of ours, and what it may not."""

from collections.abc import Mapping, Sequence

from agentevals_action.system.redaction import MIN_LENGTH, looks_secret

#: What every child may see. `HOME` stays, since tools find their configuration there; so what lies
#: in it (`.netrc`, `.ssh`, a vendor's login) can be read by a child, and so can `.git/config`,
#: where a checkout keeps its token unless told not to.
_COMMON = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR", "TEMP", "TMP"}
)
_CI_FACTS = frozenset(
    {
        "CI",
        "RUNNER_OS",
        "RUNNER_ARCH",
        "GITHUB_ACTIONS",
        "GITHUB_ACTOR",
        "GITHUB_WORKFLOW",
        "GITHUB_JOB",
    }
) | {
    *(
        "GITHUB_REPOSITORY",
        "GITHUB_REPOSITORY_OWNER",
        "GITHUB_SHA",
        "GITHUB_REF",
        "GITHUB_REF_NAME",
        "GITHUB_REF_TYPE",
    ),
    *(
        "GITHUB_BASE_REF",
        "GITHUB_HEAD_REF",
        "GITHUB_EVENT_NAME",
        "GITHUB_RUN_ID",
        "GITHUB_RUN_NUMBER",
        "GITHUB_RUN_ATTEMPT",
    ),
    *("GITHUB_SERVER_URL", "GITHUB_API_URL", "GITHUB_GRAPHQL_URL", "GITHUB_WORKSPACE"),
}
#: What no workflow can let through: the runner's own tokens, inputs, and the files by which a step
#: steers the next ones.
_NEVER = frozenset(
    {
        "GITHUB_TOKEN",
        "GITHUB_ENV",
        "GITHUB_OUTPUT",
        "GITHUB_PATH",
        "GITHUB_STATE",
        "GITHUB_STEP_SUMMARY",
    }
)
_NEVER_PREFIXES = ("INPUT_", "ACTIONS_")


def never_passed(name: str) -> bool:
    """Whether a variable is the runner's own, which no workflow can let through to a child."""
    return name in _NEVER or name.startswith(_NEVER_PREFIXES)


def scrubbed(
    environ: Mapping[str, str], allowed: Sequence[str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The environment that a child may see, and the names that were withheld from it.

    It may see the common set, facts of the CI that hold no secret's value, and what `allowed`
    names; never `INPUT_*`, `ACTIONS_*`, `GITHUB_TOKEN` or the runner's command files. Withheld are
    credentials, by their name, that naming them would let through."""
    secrets = [
        value for name, value in environ.items() if looks_secret(name) and len(value) >= MIN_LENGTH
    ]
    environment, withheld = {}, []
    for name, value in environ.items():
        if never_passed(name):
            continue
        fact = name in _CI_FACTS and not any(secret in value for secret in secrets)
        if name in allowed or name in _COMMON or name.startswith("LC_") or fact:
            environment[name] = value
        elif looks_secret(name):
            withheld.append(name)
    return environment, tuple(sorted(withheld))
