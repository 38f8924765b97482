"""The choice of the comment's template: a change does not choose how its own comment reads.

Attack: a pull request edits the template, or a program of the pull request rewrites it during the
run, and the comment states a pass or mentions people in the name of the bot. The template is read
before the first program runs, and is that of the base."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from agentevals_action.errors import GitError, InvalidInput
from agentevals_action.github.events import Job
from agentevals_action.model.run import CommentTemplate
from agentevals_action.reports import markdown
from agentevals_action.review.change.base_tree import Base
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository

#: Events whose head is trusted: a push is on its branch already, a local review has one user.
_TRUSTED = frozenset({"push", "local"})


async def choose_template(
    settings: Settings, folder: Path, job: Job, repository: GitRepository | None, base: Base
) -> tuple[CommentTemplate | None, Sequence[str]]:
    """The template that renders the comment, None for the packaged one, and notices about the
    choice. Raises InvalidInput when head's template is missing or cannot make a comment."""
    if settings.comment_template is None:
        return None, ()
    head = await asyncio.to_thread(_head_template, settings.comment_template, folder)
    await asyncio.to_thread(markdown.check_template, head)
    if job.event in _TRUSTED or not (base.sha or base.problem):
        return head, ()
    default = "this comment has the default template"
    try:
        template = await _base_template(head.name, repository, base)
        if template and template != head:
            await asyncio.to_thread(markdown.check_template, template)
    except (GitError, InvalidInput) as error:  # a change that repairs it must be able to pass
        return None, (f"the base's comment template cannot be used, so {default}: {error}",)
    if template == head:
        return head, ()
    change = f"the comment template `{head.name}`"
    if template is None:
        return None, (f"{change} is not in the base: it takes effect after the merge, {default}",)
    return template, (f"{change} is changed: the change takes effect after the merge",)


async def _base_template(
    name: str, repository: GitRepository | None, base: Base
) -> CommentTemplate | None:
    content = await repository.show(base.sha, name) if repository and base.sha else None
    if content is None:
        return None
    return CommentTemplate(name, content.decode("utf-8", "replace"))


def _head_template(name: str, folder: Path) -> CommentTemplate:
    try:
        return CommentTemplate(name, (folder / name).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        problem = f"the template {name} cannot be read: {reason}"
        raise InvalidInput(problem, "fix `comment-template`, or leave it out") from None
