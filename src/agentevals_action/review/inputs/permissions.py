"""What the targets of a pull request may use, from the targets files of the base."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.review.inputs.base_tree import Base
from agentevals_action.settings import Settings
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


def read_permissions(base: Base, settings: Settings, environ: Mapping[str, str]) -> Permissions:
    """The permissions of a pull request's targets. Without a tree of base no variable is known from
    it."""
    root, named = base.root, frozenset(settings.env)
    if root is None:
        return Permissions(named=named)
    suffix, known = f"{FOLDER}/{NAME}", dict[Path, TargetsFile]()
    for path in base.tracked:
        if f"/{path}".endswith(f"/{suffix}"):
            read_targets_above(Folder(root, root / path.removesuffix(suffix)), environ, known)
    if settings.targets and (file := root / settings.targets).is_file():
        known[file] = read_targets(file, root, environ)
    used = {pair for file, read in known.items() for pair in _used_by(file, read, root, environ)}
    return Permissions(root, named, frozenset(used))


def _used_by(
    file: Path, targets: TargetsFile, root: Path, environ: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """The variables of the targets in a file, with their destinations."""
    folder = file.parent.parent if file.parent.name == FOLDER else file.parent
    found = (entry.target for entry in targets.entries.values() if entry.target is not None)
    for target in found:
        try:
            variables = read_variables(environ, root, folder)
            resolved = resolve_target(target, variables)
        except AttemptError:
            # Without its address it permits no variable. Base's own tests report the error.
            continue
        for name in used_variables(resolved, variables):
            yield name, resolved.destination()
