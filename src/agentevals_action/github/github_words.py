"""What GitHub refused, in a sentence that says what to grant."""

from agentevals_action.github.api import Trouble

#: Words of a 403 that no permission would change.
_CLOSED = ("locked", "archived")


def refusal(what: str, trouble: Trouble, permission: str, without_secrets: str = "") -> str:
    """What could not be written or read, why, and what to grant. `without_secrets` says why a token
    that writes can not be had, where it cannot; reading can always be granted."""
    status = f"{trouble.status}: " if trouble.status else ""
    if trouble.kind == "limited":
        return f"{what}: GitHub limits the requests of this token, for longer than a run waits ({status}{trouble})."
    if trouble.kind == "down":
        return f"{what}: GitHub did not answer as it should ({status}{trouble})."
    if trouble.kind == "invalid" and trouble.status is None:
        return f"{what}: {trouble}."
    if trouble.kind == "invalid" or any(word in str(trouble) for word in _CLOSED):
        return f"{what}: GitHub refused it ({status}{trouble})."
    if trouble.status == 401:
        return f"{what}: GitHub does not accept the token ({trouble}). Give `github-token` a valid one."
    return f"{what}: the token lacks `{permission}` (GitHub answered {status}{trouble}). {_grant(permission, without_secrets)}"


def _grant(permission: str, without_secrets: str) -> str:
    if not without_secrets:
        return f"Add `{permission}` to the `permissions:` of the job."
    reason = without_secrets[0].upper() + without_secrets[1:]
    if "fork" in without_secrets:
        return f"{reason}, and its token only reads, whatever the workflow grants: the job summary has the report."
    return f"{reason}, and its token only reads until the job says otherwise: add `{permission}` to its `permissions:`."
