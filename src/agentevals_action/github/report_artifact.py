"""The artifact of the report page: its name, and where there can be one.

The composite action starts a process for this: it imports no library."""

from urllib.parse import urlsplit


def report_name(comment_id: str, run: int, attempt: int) -> str:
    """The name of a report page's artifact, which no other gate or attempt of the run has."""
    return f"agentevals-report-{comment_id}-{run}-{attempt}.html"


def why_unsupported(server_url: str) -> str:
    """Why a server takes no artifacts that open in the browser; empty if it does."""
    host = urlsplit(server_url).hostname or ""
    is_supported = host == "github.com" or host.endswith(".ghe.com")
    return (
        "" if is_supported else "GitHub Enterprise Server has no artifacts that open in the browser"
    )
