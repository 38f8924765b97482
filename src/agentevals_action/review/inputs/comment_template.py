"""The choice of the comment's template: a change does not choose how its own comment reads.

Attack: a pull request edits the template, or a program of the pull request rewrites it during the
run, and the comment states a pass or mentions people in the name of the bot. The template is read
before the first program runs, and is that of the base."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from agentevals_action.errors import GitError, InvalidInput
from agentevals_action.model.run import CommentTemplate
from agentevals_action.reports.markdown import texts as markdown
from agentevals_action.review.inputs.base_tree import Base
from agentevals_action.review.inputs.request import ReviewRequest

#: Events whose head is trusted: a push is on its branch already, a local review has one user.
_TRUSTED = frozenset({"push", "local"})


async def choose_template(
    request: ReviewRequest, base: Base
) -> tuple[CommentTemplate | None, Sequence[str]]:
    """The template that renders the comment, None for the packaged one, and notices about the
    choice. Raises InvalidInput when head's template is missing or cannot make a comment."""
    name = request.settings.comment_template
    if name is None:
        return None, ()
    head = await asyncio.to_thread(_head_template, name, request.workspace.folder)
    await asyncio.to_thread(markdown.check_template, head)
    if request.job.event in _TRUSTED or not (base.sha or base.problem):
        return head, ()
    try:
        template = await _base_template(name, request, base)
        if template == head:
            return head, ()
        if template:
            await asyncio.to_thread(markdown.check_template, template)
    except (GitError, InvalidInput):  # a change that repairs it must be able to pass
        template = None
    used = "the base has none that can be used, so this comment has the default one"
    if template:
        used = "this comment has that of the base"
    return template, (f"the comment template `{name}` takes effect after the merge: {used}",)


def _head_template(name: str, folder: Path) -> CommentTemplate:
    try:
        return CommentTemplate(name, (folder / name).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        problem = f"the template {name} cannot be read: {reason}"
        raise InvalidInput(problem, "fix `comment-template`, or leave it out") from None


async def _base_template(name: str, request: ReviewRequest, base: Base) -> CommentTemplate | None:
    repository = request.repository
    content = await repository.show(base.sha, name) if repository and base.sha else None
    return None if content is None else CommentTemplate(name, content.decode("utf-8", "replace"))
