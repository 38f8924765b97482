"""`ignored-fields`: the fields that a repository declares as remarks."""

import json
from pathlib import Path

import pytest

from tests.support import command
from tests.support.repositories import Repository

TARGETS = "- {name: default, provider: mock, responses: [{pattern: '', response: a}]}\n"
CASES = (
    '{"id": "a", "input": "q", "colour": "red", "expectedToolIds": ["x"]}\n'
    '{"id": "b", "input": "q", "colour": "blue"}\n'
)
SUITE = "name: one\ntests: cases.jsonl\nassert: [{type: contains, value: a, required: true}]\n"
LIST = "ignored-fields: [test.colour, test.expectedToolIds]\n"


def repository_with(folder: Path, configuration: str, suite: str = SUITE) -> Repository:
    files = {
        ".agentv/targets.yaml": TARGETS,
        "EVAL.yaml": suite,
        "cases.jsonl": CASES,
        ".agentevals.yaml": configuration,
    }
    return Repository.create(folder / "repository", files)


def test_unknown_field__the_error_states_the_line_that_ignores_it(tmp_path: Path) -> None:
    repository = repository_with(tmp_path, "")

    done = command.run(repository.path, "validate")

    assert done.code == 2
    assert done.out.splitlines() == [
        "cases.jsonl:1:1: the field `colour` of this test is unknown; remove it, or put it in "
        "`metadata`; if nothing is to read it, write `ignored-fields: [test.colour]` in "
        ".agentevals.yaml",
        "cases.jsonl:1:1: the field `expectedToolIds` of this test is unknown; did you mean "
        "`expected_outcome`? If nothing is to read it, write `ignored-fields: "
        "[test.expectedToolIds]` in .agentevals.yaml",
        "cases.jsonl:2:1: the field `colour` of this test is unknown; remove it, or put it in "
        "`metadata`; if nothing is to read it, write `ignored-fields: [test.colour]` in "
        ".agentevals.yaml",
    ]
    assert done.err.splitlines()[-2:] == [
        "If nothing is to read the unknown fields, write in .agentevals.yaml:",
        "ignored-fields: [test.colour, test.expectedToolIds]",
    ]
    repository.write({".agentevals.yaml": "ignored-fields: [test.colour]\n"})
    again = command.run(repository.path, "validate")
    assert "add `test.expectedToolIds` to `ignored-fields` in .agentevals.yaml" in again.out
    assert "colour" not in again.out


def test_field_of_evaluators__at_a_test_is_no_remark(tmp_path: Path) -> None:
    suite = (
        "name: one\nassert: [{type: contains, value: a}]\n"
        "tests: [{id: a, input: q, required: true}, {id: b, input: q, requird: true}]\n"
    )
    repository = repository_with(tmp_path, "", suite)

    done = command.run(repository.path, "validate")

    assert done.out.splitlines() == [
        "EVAL.yaml:3:27: `required` is a field of evaluators; write it at the evaluators that it "
        "concerns",
        "EVAL.yaml:3:62: the field `requird` of this test is unknown; did you mean `required`?",
    ]
    assert "ignored-fields" not in done.err


@pytest.mark.parametrize(
    "listed", ["[test.colour, test.expectedToolIds]", "[colour, expectedToolIds]"]
)
def test_ignored_fields__are_no_errors(tmp_path: Path, listed: str) -> None:
    repository = repository_with(tmp_path, f"ignored-fields: {listed}\n")

    validated = command.run(repository.path, "validate", "--strict")
    ran = command.run(repository.path, "run")
    explained = command.run(repository.path, "explain", "a")

    assert (validated.code, validated.out) == (0, "EVAL.yaml: valid, 2 tests\n"), validated.out
    assert validated.err == ""
    assert ran.code == 0, ran.err
    names = listed[1:-1].replace(", ", "` and `")
    assert f"ignored fields `{names}` of the suite" in " ".join(explained.out.split())


def test_ignored_fields__of_a_long_file_are_no_errors_in_the_second_reading(tmp_path: Path) -> None:
    question = "q" * 1500
    rows = "".join(f'{{"id": "t{n}", "input": "{question}", "colour": "x"}}\n' for n in range(80))
    repository = repository_with(tmp_path, "ignored-fields: test.colour\n")
    repository.write({"cases.jsonl": rows})

    done = command.run(repository.path, "run")

    assert done.code == 0, done.err
    results = (repository.path / "agentevals-report/results.jsonl").read_text().splitlines()
    assert [json.loads(result)["verdict"] for result in results] == ["pass"] * 80


def test_ignored_fields__hold_in_targets_and_as_an_input(tmp_path: Path) -> None:
    repository = repository_with(tmp_path, LIST)
    repository.write({".agentv/targets.yaml": TARGETS.replace("}]}", "}], timeout_ms: 5}")})

    refused = command.run(repository.path, "validate")
    assert refused.code == 2
    assert (
        "the field `timeout_ms` of this target is unknown; did you mean `timeout_s" in refused.out
    )
    fields = "colour, expectedToolIds, target.timeout_ms"
    assert command.run(repository.path, "validate", "--ignored-fields", fields).code == 0


def test_ignored_field__in_another_object_is_an_error(tmp_path: Path) -> None:
    suite = SUITE.replace("value: a", "value: a, colour: red")
    repository = repository_with(tmp_path, LIST, suite)

    done = command.run(repository.path, "validate")

    assert done.code == 2
    assert "EVAL.yaml:3:37: the field `colour` of this evaluator is unknown" in done.out


@pytest.mark.parametrize(
    ("listed", "error"),
    [
        (
            "required",
            ".agentevals.yaml:1:18: `required` is a field that the format knows; remove it, or "
            "name the object in which it has no meaning, as `test.required`",
        ),
        (
            "evaluator.required",
            ".agentevals.yaml:1:18: `required` is a field that the format knows in this object; "
            "remove it",
        ),
        (
            "test.threshold",
            ".agentevals.yaml:1:18: `threshold` is a field that the format knows in this object; "
            "remove it",
        ),
        ("5", ".agentevals.yaml:1:18: `ignored-fields` is the number 5; write a text, or a list"),
    ],
)
def test_ignored_fields__a_field_that_the_format_knows_is_an_error(
    tmp_path: Path, listed: str, error: str
) -> None:
    repository = repository_with(tmp_path, f"ignored-fields: [{listed}]\n")

    done = command.run(repository.path, "validate")

    assert done.code == 2
    assert error in done.err


def test_ignored_fields__a_known_field_in_the_input_is_an_error(tmp_path: Path) -> None:
    repository = repository_with(tmp_path, "")

    done = command.run(repository.path, "validate", "--ignored-fields", "test.criteria")

    assert done.code == 2
    assert "`criteria` is a field that the format knows in this object; remove it" in done.err


def test_ignored_fields__a_name_that_no_suite_has_is_a_warning(tmp_path: Path) -> None:
    repository = repository_with(tmp_path, "ignored-fields: [colour, expectedToolIds, shape]\n")
    warning = "`shape` in `ignored-fields` is no unknown field of any suite, so it has no effect"

    validated = command.run(repository.path, "validate")
    as_json = json.loads(command.run(repository.path, "validate", "--json").out)
    review = command.run(repository.path, "review", "--base", "HEAD", "--select", "all")

    assert validated.code == 0
    assert f"warning: .agentevals.yaml:1:1: {warning}; correct it" in validated.err
    assert [one["problem"] for one in as_json[0]["warnings"]] == [warning]
    assert review.code == 0, review.err
    assert f"{warning}: correct it, or remove it" in review.out
    assert warning not in command.run(repository.path, "validate", "EVAL.yaml").err


def test_review__names_what_the_change_ignores(tmp_path: Path) -> None:
    repository = repository_with(tmp_path, "")
    repository.write({".agentevals.yaml": LIST, "EVAL.yaml": SUITE + "# changed\n"})

    done = command.run(repository.path, "review", "--base", "HEAD")

    assert "adds `test.colour` and `test.expectedToolIds` to `ignored-fields`" in done.out
    assert "nothing reads these fields" in done.out


@pytest.mark.parametrize("listed", ["requird", "evaluator.requird"])
def test_review__a_change_cannot_hide_a_gate_behind_a_misspelling(
    tmp_path: Path, listed: str
) -> None:
    repository = repository_with(tmp_path, LIST)
    listing = LIST.replace("]", f", {listed}]")
    repository.write(
        {".agentevals.yaml": listing, "EVAL.yaml": SUITE.replace("required", "requird")}
    )

    local = command.run(repository.path, "validate")
    review = command.run(repository.path, "review", "--base", "HEAD")

    assert local.code == 0, local.out
    assert review.code == 2, review.err
    assert "`requird` of this evaluator is unknown; did you mean `required`?" in review.out
    assert f"`{listed}`, which resembles a field that the format knows" in review.out
    repository.write({"EVAL.yaml": SUITE})
    repository.commit("list it first")
    repository.write({"EVAL.yaml": SUITE.replace("required", "requird")})
    merged = command.run(repository.path, "review", "--base", "HEAD")
    assert merged.code == 0, merged.out
    assert "required gate" in merged.out
