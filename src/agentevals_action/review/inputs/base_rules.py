"""What the base decides, because a change does not choose it for its own review: the template of
the comment, the tests in quarantine, the calibration of judges, and what the targets may use. All
is read before the first program of the change starts, and from the commit of base, which no program
can write."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from agentevals_action.errors import AttemptError, GitError, InvalidInput
from agentevals_action.judges.calibration_file import parse_calibration, read_calibration
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.judge import (
    ALL_DECIDE,
    CALIBRATION_ADVICE,
    CALIBRATION_FILE,
    JudgeRule,
)
from agentevals_action.model.quarantine import FILE, Quarantines
from agentevals_action.model.run import CommentTemplate
from agentevals_action.reports.markdown import texts as markdown
from agentevals_action.review.inputs.base_tree import Base
from agentevals_action.suites.checkout import Checkout
from agentevals_action.suites.configuration_file import read_quarantines
from agentevals_action.suites.find import FOLDER
from agentevals_action.suites.targets_file import (
    NAME,
    TargetsFile,
    read_targets,
    read_targets_above,
)
from agentevals_action.system.files.paths import Folder
from agentevals_action.targets.calls.client import resolve_target
from agentevals_action.targets.calls.permissions import Permissions, used_variables
from agentevals_action.targets.variables import read_variables

#: Events whose head is trusted: a push is on its branch already, a local review has one user.
_TRUSTED = frozenset({"push", "local"})


async def choose_template(
    checkout: Checkout, base: Base, event: str
) -> tuple[CommentTemplate | None, Sequence[str]]:
    """The template that renders the comment, None for the packaged one, and notices about the
    choice; `checkout` is that of head. Raises InvalidInput when head's template is missing or
    cannot make a comment.

    Attack: a pull request edits the template, and the comment states a pass or mentions people in
    the name of the bot."""
    name, repository = checkout.settings.comment_template, checkout.repository
    if name is None:
        return None, ()
    head = await asyncio.to_thread(_read_template, name, checkout.folder)
    await asyncio.to_thread(markdown.check_template, head)
    if event in _TRUSTED or not base.exists:
        return head, ()
    template = None
    try:
        content = await repository.show(base.sha, name) if repository and base.sha else None
        if content is not None:
            template = CommentTemplate(name, content.decode("utf-8", "replace"))
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


def _read_template(name: str, folder: Path) -> CommentTemplate:
    try:
        return CommentTemplate(name, (folder / name).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        problem = f"the template {name} cannot be read: {reason}"
        raise InvalidInput(problem, "fix `comment-template`, or leave it out") from None


async def choose_quarantines(checkout: Checkout, base: Base, event: str) -> Quarantines:
    """The quarantine of head and base. On a push the change is on its branch already, and the
    quarantine of head is in effect."""
    head, content = checkout.configuration, None
    if checkout.repository and base.sha:
        content = await checkout.repository.show(base.sha, FILE) or b""
    by_base, today = event != "push" and base.exists, datetime.now(UTC).date()
    return await asyncio.to_thread(read_quarantines, head, today, content, by_base=by_base)


@dataclass(frozen=True)
class ChosenRule:
    """Which judges decide; the `errors` and `warnings` about head's calibration; the `problem` if
    base's calibration is not known."""

    rule: JudgeRule = ALL_DECIDE
    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    problem: str = ""


async def choose_judge_rule(checkout: Checkout, base: Base, event: str) -> ChosenRule:
    """Which judges decide by the inputs `judge-floor` and `fail-on` and base's calibration; by
    head's calibration without a base, and on a push.

    Attack: a pull request edits the calibration, so that the judge that fails it is advisory."""
    settings, file = checkout.settings, checkout.below / CALIBRATION_FILE
    rule = JudgeRule(settings.judge_floor, pairs="pairwise" in (settings.fail_on or ()))
    if not (rule.floor or rule.pairs):
        return ChosenRule()
    path, of = file.relative_to(checkout.root).as_posix(), ""
    head = content = await asyncio.to_thread(read_calibration, file)
    if event != "push" and base.exists:
        if base.sha is None or checkout.repository is None:
            problem = f"`{path}` of base states which judges decide, and base could not be obtained"
            return ChosenRule(replace(rule, problem=problem), problem=problem)
        of, content = " of base", await checkout.repository.show(base.sha, path)
    errors, warnings = list[Diagnostic](), list[Diagnostic]()
    is_changed = head != content
    if head is not None and (is_changed or not of):
        errors += parse_calibration(head, path).errors
    if is_changed:
        problem = "this calibration differs from that of base, which counts in this review"
        advice = "it takes effect once it is merged"
        warnings.append(Diagnostic(Location(path), problem, advice))
    if content is None:
        if head is None:
            judges = "`judge-floor` is set" if rule.floor else "`fail-on` names `pairwise`"
            which = "each judge" if rule.floor else "each judge of pairs"
            problem = f"{judges} and nothing is calibrated, so {which} is advisory"
            warnings.append(Diagnostic(Location(path), problem, CALIBRATION_ADVICE))
        return ChosenRule(rule, tuple(errors), tuple(warnings))
    parsed, problem = parse_calibration(content, path), ""
    if parsed.errors:
        problem = f"the calibration{of} is invalid: {parsed.errors[0]}"
        warnings += () if errors else parsed.errors
    rule = replace(rule, calibration=parsed.calibration, problem=problem)
    return ChosenRule(rule, tuple(errors), tuple(warnings))


def read_permissions(checkout: Checkout, base: Base) -> Permissions:
    """The permissions of the targets of a pull request's `checkout`, from the targets files of
    base. Without a tree of base they allow no variable of targets files."""
    settings, environ = checkout.settings, checkout.environ
    root, named = base.root, frozenset(settings.env)
    if root is None:
        return Permissions(named=named)
    suffix, files = f"{FOLDER}/{NAME}", dict[Path, TargetsFile]()
    for path in base.tracked:
        if f"/{path}".endswith(f"/{suffix}"):
            read_targets_above(Folder(root, root / path.removesuffix(suffix)), environ, files)
    if settings.targets and (file := root / settings.targets).is_file():
        files[file] = read_targets(file, root, environ)
    used = {pair for file, read in files.items() for pair in _used_by(file, read, root, environ)}
    return Permissions(root, named, frozenset(used))


def _used_by(
    file: Path, targets: TargetsFile, root: Path, environ: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """The variables of the targets in a file, with their destinations."""
    folder = file.parent.parent if file.parent.name == FOLDER else file.parent
    for target in (entry.target for entry in targets.entries.values() if entry.target is not None):
        try:
            variables = read_variables(environ, root, folder)
            resolved = resolve_target(target, variables)
        except AttemptError:
            # A target without an address permits no variable. Base's own tests report the error.
            continue
        for name in used_variables(resolved, variables):
            yield name, resolved.destination()
