"""What the status codes of HTTP are called."""


def phrase(status: int) -> str:
    """The usual words for a status; "no words" for one that has none."""
    from http import HTTPStatus  # late: nearly every server has words of its own

    return next((known.phrase for known in HTTPStatus if known == status), "no words")
