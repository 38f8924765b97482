"""What the status codes of HTTP are called."""

from http import HTTPStatus


def phrase(status: int) -> str:
    """The usual words for a status; "no words" for one that has none."""
    return next((known.phrase for known in HTTPStatus if known == status), "no words")
