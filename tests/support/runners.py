"""Runners of suites: recorded results of each format, and the real programs, which slow tests
start."""

import dataclasses
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.runner import Runner
from agentevals_action.model.suite import Suite
from agentevals_action.runners.commands import filled
from agentevals_action.runners.formats import FORMATS
from agentevals_action.runners.formats.base import Format, Row, Selection
from agentevals_action.suites.checkout import Checkout
from agentevals_action.suites.configuration_file import Configuration, ConfigurationFile
from tests.support import suites

DATA = Path(__file__).resolve().parents[1] / "data/runners"
RECORDINGS: dict[str, dict[str, Any]] = {
    each["name"]: each for each in yaml.safe_load((DATA / "recordings.yaml").read_text("utf-8"))
}


def runner(results: str, **fields: Any) -> Runner:
    """An entry of `runners` for a format, with what it must have."""
    command = [] if FORMATS[results].command else ["run", "{RESULTS}"]
    common = {"name": results, "results": results, "suites": ["x"], "command": command}
    return Runner.model_validate({**common, **fields})


def recorded(name: str, place: Path) -> tuple[Path, Suite]:
    """The folder with a recording's results, and its suite in a checkout, both new in `place`."""
    known = RECORDINGS[name]
    results, root = place.resolve() / "results", place.resolve() / "checkout"
    if "tree" in known:
        shutil.copytree(DATA / known["tree"], root, ignore=shutil.ignore_patterns("recorded-*"))
    else:
        suites.write(root, dict.fromkeys(known["files"], ""))
    if "file" in known:
        text = (DATA / known["results"]).read_text("utf-8").replace("/checkout", str(root))
        suites.write(results, {known["file"]: text})
    else:
        shutil.copytree(DATA / known["results"], results)
    files = sorted(file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file())
    own = known["suite"]
    below = FORMATS[known["format"]].find_folder(PurePosixPath(own))
    suite = Suite(path=own, root=root, folder=root / below)
    named = (NamedFile(path, "suite" if path == own else "named file") for path in files)
    entry = runner(known["format"], **{name: known[name] for name in known.keys() & {"pass"}})
    return results, suite.model_copy(update={"files": tuple(named), "runner": entry})


def describe(row: Row, root: Path) -> dict[str, Any]:
    """A row as JSON data, without what its format alone needs; `root` is its checkout."""
    fields = dataclasses.asdict(row)
    fields |= {"checks": [[*vars(check).values()] for check in row.checks]}
    fields |= {"location": row.location and f"{row.location.path}:{row.location.line}"}
    fields |= {"usage": {name: count for name, count in vars(row.usage).items() if count}}
    kept = {name: fields[name] for name in fields if name not in ("source", "key")}
    described: dict[str, Any] = json.loads(json.dumps(kept).replace(str(root), "/checkout"))
    return described


def find_runner(name: str) -> str:
    """The program of a runner on PATH; the test is skipped where it is not installed."""
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not on PATH; install it to run this test")
    return program


def started(
    known: Format, suite: Suite, results: Path, selection: Selection | None = None
) -> Sequence[Row]:
    """The rows of a start of the real program with two samples, of all tests or of a selection;
    `results` is the folder that it gets."""
    file, state = results.with_name(f"{results.name}-selection.json"), results.with_name("state")
    file.write_text((selection and selection.text) or "")
    results.mkdir()
    values = {
        "{SUITE}": known.target(suite),
        "{SAMPLES}": "2",
        "{RESULTS}": str(results),
        "{SELECTION}": str(file),
        "{STATE}": str(state),
    }
    words = selection.words if selection and selection.text is None else None
    command = known.again if selection else known.command
    variables = {name: filled([text], values)[0] for name, text in known.variables.items()}
    done = subprocess.run(
        [find_runner(known.program), *filled(command, values, words)],
        cwd=suite.root,
        env={**os.environ, "HOME": str(results.parent), **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in known.exit_codes, done.stdout + done.stderr
    return known.read(results, suite)


def checkout(root: Path, files: Iterable[str], *runners: Runner, below: str = ".") -> Checkout:
    """A checkout of these files, all tracked, whose configuration has these entries."""
    known = tuple(sorted(files))
    content = Configuration(runners=runners)
    return Checkout(
        root,
        (root / below).resolve(),
        known,
        frozenset(known),
        configuration=ConfigurationFile(content),
    )
