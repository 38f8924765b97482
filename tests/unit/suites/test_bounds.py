"""Inputs made to hurt: each ends in a suite or in diagnostics, soon, and in little memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import nasty, suites

READER = Path(suites.__file__).with_name("read_bounded.py")
#: A plain suite, whose processor time in the same process is the unit of the limit.
REFERENCE = "name: plain\ntests:\n" + "".join(
    f"  - {{id: t{number}, input: hello, assert: [{{type: contains, value: a}}]}}\n"
    for number in range(1_000)
)
MAX_REFERENCES = 20
MAX_MEGABYTES = 200


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the peak of a process's memory is read from /proc"
)
@pytest.mark.parametrize("group", nasty.CORPUS)
def test_input__that_was_made_to_hurt(tmp_path: Path, group: str) -> None:
    corpus = nasty.CORPUS[group]
    names = {
        str(suites.write(tmp_path / str(number), corpus[name]())): name
        for number, name in enumerate(corpus)
    }
    reference = str(suites.write(tmp_path / "reference", {"EVAL.yaml": REFERENCE}))

    done = subprocess.run(
        [sys.executable, str(READER), reference, *names], capture_output=True, text=True
    )

    first, *lines = map(json.loads, done.stdout.splitlines())
    assert (first["folder"], first["tests"]) == (reference, 1_000)
    read = {names[line["folder"]]: line for line in lines}
    assert {name for name in corpus if name not in read} == set(), done.stderr[-3_000:]
    over = {
        name: line
        for name, line in read.items()
        if line["seconds"] > MAX_REFERENCES * first["seconds"] or line["megabytes"] > MAX_MEGABYTES
    }
    assert over == {}, f"the plain suite took {first['seconds']} s"
    assert {
        name: line["longest"] for name, line in read.items() if line["longest"] > 3_000
    } == {}, "nobody reads a line that long"
    assert {
        name for name, line in read.items() if not line["is_valid"] and not line["diagnostics"]
    } == set()
    assert {name for name, line in read.items() if line["is_valid"] and not line["tests"]} == set()
