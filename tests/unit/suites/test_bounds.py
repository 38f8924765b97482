"""Inputs made to hurt: each ends in a suite or in faults, soon, and in little memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import nasty, suites

READER = Path(suites.__file__).with_name("read_bounded.py")
#: Seconds of processor time: one on a machine that does nothing else, twice that where tests run
#: side by side.
MOST_SECONDS = 2.0
MOST_MEGABYTES = 200


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

    done = subprocess.run([sys.executable, str(READER), *names], capture_output=True, text=True)

    told = {names[line["folder"]]: line for line in map(json.loads, done.stdout.splitlines())}
    assert {name for name in corpus if name not in told} == set(), done.stderr[-3_000:]
    over = {
        name: line
        for name, line in told.items()
        if line["seconds"] > MOST_SECONDS or line["megabytes"] > MOST_MEGABYTES
    }
    assert over == {}
    assert {
        name: line["longest"] for name, line in told.items() if line["longest"] > 3_000
    } == {}, "nobody reads a line that long"
    assert {name for name, line in told.items() if not line["whole"] and not line["told"]} == set()
    assert {name for name, line in told.items() if line["whole"] and not line["tests"]} == set()
