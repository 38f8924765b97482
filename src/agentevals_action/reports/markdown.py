"""The review as Markdown: the comment, the check run's text, the job summary."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentevals_action import templating
from agentevals_action.errors import InvalidInput
from agentevals_action.escaping import plain
from agentevals_action.model.comparison import Decision, Outcome, Review
from agentevals_action.reports.view.build import view_of
from agentevals_action.reports.view.links import Links
from agentevals_action.reports.view.models import MARKER, Limits
from agentevals_action.reports.view.verdict import headline
from agentevals_action.system.tree_files import write_atomically

# GitHub takes 65,536 characters; what its host adds (the marker of the comment) has room in what is
# left.
COMMENT_LIMIT = 65_000
# https://docs.github.com/en/rest/checks/runs#create-a-check-run
CHECK_TITLE_LIMIT = 255
CHECK_SUMMARY_LIMIT = 65_535
# https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#step-isolation-and-limits
JOB_SUMMARY_LIMIT = 1024 * 1024

_LARGE = Limits(
    "full",
    detailed=300,
    answer=6_000,
    lines=2_000,
    folded=1_000,
    quiet=1_000,
    items=1_000,
    text=500,
)
_FULL = Limits(
    "full", detailed=40, answer=1_500, lines=200, folded=100, quiet=100, items=100, text=300
)
_CHANGED = Limits(
    "changed", detailed=5, answer=400, lines=250, folded=20, quiet=0, items=30, text=120
)
_COUNTS = Limits("counts", detailed=0, answer=0, lines=0, folded=0, quiet=0, items=20, text=100)
#: The last resort, for names and messages that are long themselves.
_BARE = replace(_COUNTS, name="bare", items=3, text=60)
_LEVELS = (_FULL, _CHANGED, _COUNTS, _BARE)


def comment(review: Review, links: Links, custom: Path | None = None) -> str:
    """The comment's text, under 65,000 characters: full, or only what changed or failed, or counts
    with a link.

    `custom` is a template that extends ours. InvalidInput when it cannot be rendered, loses the
    marker, or makes too long a text."""
    text = _fitting("comment.md.j2", review, links, _LEVELS, COMMENT_LIMIT, custom)
    if MARKER not in text.splitlines():
        name = custom.name if custom else "comment.md.j2"
        raise InvalidInput(
            f"the template {name} loses the marker",
            "keep the block `marker`: `{{ view.marker }}` on a line of its own",
        )
    return text


def check_template(custom: Path) -> None:
    """InvalidInput when a custom template cannot make a comment, before anything is run."""
    comment(
        Review(head_sha="0" * 40, base_sha=None, decision=Decision(Outcome.PASSED, 0, "success")),
        Links(),
        custom,
    )


def check(review: Review, links: Links, unshown: int = 0) -> tuple[str, str]:
    """Title (plain text, at most 255 characters) and summary (at most 65,535) of the check run;
    `unshown` annotations are counted in it."""
    told = (
        f"{unshown:,} more annotations are not shown."
        if unshown > 1
        else "1 more annotation is not shown."
        if unshown
        else ""
    )
    return plain(headline(review), CHECK_TITLE_LIMIT), _fitting(
        "check.md.j2", review, links, _LEVELS, CHECK_SUMMARY_LIMIT, unshown=told
    )


def job_summary(review: Review, links: Links) -> str:
    """The job summary, at most 1 MiB of UTF-8: the comment's words with longer lists and
    answers."""
    return _fitting(
        "summary.md.j2",
        review,
        replace(links, run_url=None),
        (_LARGE, *_LEVELS),
        JOB_SUMMARY_LIMIT,
        in_bytes=True,
    )


def _fitting(
    template: str,
    review: Review,
    links: Links,
    levels: Sequence[Limits],
    limit: int,
    custom: Path | None = None,
    unshown: str = "",
    in_bytes: bool = False,
) -> str:
    for level in levels:
        text = templating.render_report(
            template, {"view": view_of(review, links, level), "unshown": unshown}, custom
        )
        if (len(text.encode(errors="replace")) if in_bytes else _characters(text)) <= limit:
            return text
    raise InvalidInput(
        f"the template {custom.name if custom else template} makes more than {limit:,} characters",
        "make it shorter",
    )


def _characters(text: str) -> int:
    """Length in UTF-16 units, the largest that `characters` can mean."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass(frozen=True)
class CommentFile:
    """`comment.md`: the comment as it is posted."""

    links: Links
    custom: Path | None = None
    filename: str = "comment.md"

    def write(self, review: Review, folder: Path) -> None:
        """Writes the comment; InvalidInput when the custom template cannot make it."""
        write_atomically(folder / self.filename, comment(review, self.links, self.custom))
