"""The commands of runners."""

from typing import Any

import pytest

from agentevals_action.model.runner import Runner
from agentevals_action.runners.commands import filled, find_problems, split_commands
from agentevals_action.runners.formats import FORMATS

COMMAND = ["run", "{SUITE}", "{RESULTS}"]


def runner(results: str, **fields: Any) -> Runner:
    return Runner.model_validate({"name": "r", "suites": ["*"], "results": results, **fields})


@pytest.mark.parametrize("name", [name for name, known in FORMATS.items() if known.command])
def test_commands__of_a_known_format_are_complete(name: str) -> None:
    known = FORMATS[name]
    first, again = split_commands(runner(name))
    assert (" ".join(first)).startswith(known.program)
    assert not [*find_problems(runner(name))]
    assert first != again
    assert split_commands(runner(name, program="npx 'a b'"))[0] == ("npx", "a b", *known.command)


def test_commands__of_ones_own_run_all_tests_again_without_another() -> None:
    assert split_commands(runner("agentevals", command=COMMAND)) == (tuple(COMMAND), tuple(COMMAND))
    again = [*COMMAND, "--only", "{SELECTION}"]
    assert split_commands(runner("agentevals", command=COMMAND, again=again))[1] == tuple(again)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"results": "junti"}, "there is no format of results `junti`; did you mean `junit`?"),
        ({"results": "own"}, "there is no format of results `own`; write `promptfoo`, `junit`"),
        ({}, "`results: agentevals` has no default command; write `command`, a list of words"),
        ({"command": ["run"]}, "`command` does not say where the results go; write `{RESULTS}`"),
        (
            {"command": [*COMMAND, "{SELECTION}"]},
            "`command` has no placeholder `{SELECTION}`; write `{SUITE}`, `{SAMPLES}` or "
            "`{RESULTS}`",
        ),
        *(
            ({"command": ["run", *words]}, f"`command` has no placeholder `{words[0]}`; write")
            for words in (["{suite}", "{RESULTS}"], ["{{SUITE}}", "{RESULTS}"], ["{results}"])
        ),
        (
            {"command": COMMAND, "again": [*COMMAND, "{TESTS}"]},
            "`again` has no placeholder `{TESTS}`; write `{SUITE}`, `{SAMPLES}`, `{RESULTS}` or "
            "`{SELECTION}`",
        ),
        (
            {"command": COMMAND, "pass": {"scorer": "s", "at_least": 0.5}},
            "`pass` has no effect with `results: agentevals`, which has verdicts; remove it",
        ),
        (
            {"command": COMMAND, "program": "npx x"},
            "`program` has no effect with `command`; write it there as first word",
        ),
        (
            {"results": "promptfoo", "program": "npx 'promptfoo"},
            "`program` cannot be split into words (No closing quotation); close its quotes",
        ),
    ],
)
def test_problems__say_what_is_wrong_and_what_to_do(fields: dict[str, Any], problem: str) -> None:
    found = find_problems(runner(**{"results": "agentevals", **fields}))
    ((_, text),) = found
    assert text.startswith(problem)


def test_filled__values_are_parts_of_words_and_a_selection_is_words() -> None:
    words = ("run", "@{SELECTION}", "{SELECTION}", "--out={RESULTS}/x", "{OTHER}")
    values = {"{RESULTS}": "/r s", "{SELECTION}": "/file"}
    assert filled(words, values) == ("run", "@/file", "/file", "--out=/r s/x", "{OTHER}")
    assert filled(words, {}, ("-t", "a")) == (
        *("run", "@{SELECTION}", "-t", "a"),
        *("--out={RESULTS}/x", "{OTHER}"),
    )
