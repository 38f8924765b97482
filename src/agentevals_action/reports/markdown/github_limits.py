"""The limits of GitHub, each with its documentation, and text that is cut to fit them."""

# https://docs.github.com/en/rest/checks/runs#create-a-check-run
ANNOTATIONS_PER_REQUEST = 50
ANNOTATION_TITLE = 255
ANNOTATION_MESSAGE_BYTES = 64 * 1024
CHECK_TITLE = 255
CHECK_SUMMARY = 65_535
# https://docs.github.com/en/rest/issues/comments#create-an-issue-comment replies 422 beyond it
COMMENT = 65_536
#: Characters of a comment's text, which leave space for the hidden marker.
COMMENT_TEXT = 65_000
# https://docs.github.com/en/rest/using-the-rest-api/using-pagination-in-the-rest-api
PAGE = 100
# https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api#pause-between-mutative-requests
SECONDS_BETWEEN_WRITES = 1.0
# https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit
SECONDARY_LIMIT_SECONDS = 60.0
# https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
COMMANDS_PER_STEP = 10
STEP_SUMMARY_BYTES = 1024 * 1024
#: UTF-16 units of a step summary: none of them has more than three bytes in UTF-8.
STEP_SUMMARY = STEP_SUMMARY_BYTES // 3


def count_characters(text: str) -> int:
    """Length in UTF-16 units, the largest that GitHub's `characters` can mean."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut_characters(text: str, limit: int) -> str:
    """The longest beginning of at most `limit` UTF-16 units."""
    kept = text[:limit]
    while (excess := count_characters(kept) - limit) > 0:
        kept = kept[: len(kept) - max(1, excess // 2)]
    return kept


def cut_bytes(text: str, limit: int) -> str:
    """The longest beginning of at most `limit` bytes of UTF-8; lone surrogates become `?`."""
    return text.encode("utf-8", "replace")[: max(0, limit)].decode("utf-8", "ignore")


def cut_markdown(text: str, limit: int, reserved: int = 0) -> str:
    """Markdown of at most `limit` UTF-16 units, of which `reserved` stay free.

    A cut ends at a line. The note about it comes first, because the end may lie inside an open
    fence or fold."""
    if count_characters(text) + reserved <= limit:
        return text
    note = (
        f"**This text is longer than GitHub's limit of {limit:,} characters: "
        "its end is cut off.**\n\n"
    )
    kept = cut_characters(text, limit - reserved - len(note))
    return note + (kept[: kept.rfind("\n")] if "\n" in kept else kept)
