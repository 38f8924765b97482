import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentevals_action.targets.agents import placeholders

TEXT = st.text(
    alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30
)


def run(folder: Path, command: str | Sequence[str], **values: str) -> str:
    placeholders.check(command)
    words, variables = placeholders.fill(command, values)
    environment = {"PATH": os.environ["PATH"], **variables}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, check=True)
    return done.stdout.decode()


@pytest.mark.parametrize(
    "command",
    [
        "printf '<%s>' {PROMPT}",
        "printf '<%s>' '{PROMPT}'",
        'printf "<%s>" "{PROMPT}"',
        "printf %s \"<\"{PROMPT}'>'",
        "X={PROMPT}; printf '<%s>' \"$X\"",
        "printf '<%s>' \"a\\\"b\" >/dev/null; printf '<%s>' {PROMPT}",
        ["printf", "<%s>", "{PROMPT}"],
        ["printf", "%s", "<{PROMPT}>"],
    ],
    ids=str,
)
@settings(max_examples=30)
@given(TEXT)
def test_fill__any_text_is_one_word_and_never_code(
    tmp_path_factory: pytest.TempPathFactory, command: str | Sequence[str], prompt: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    for text in (prompt, f"'; \"$({prompt})`\n\\", "-e {PROMPT} $HOME *"):
        assert run(folder, command, PROMPT=text) == f"<{text}>"


def test_fill__several_placeholders_and_braces_of_the_shell(tmp_path: Path) -> None:
    script = "echo {EVAL_ID}.txt > {OUTPUT_FILE}; cat {OUTPUT_FILE}; echo ${EVAL_ID} {OTHER}"
    output = run(tmp_path, script, EVAL_ID="a b", OUTPUT_FILE=str(tmp_path / "output.txt"))
    assert output == "a b.txt\n{OTHER}\n"


@pytest.mark.parametrize(
    "script",
    [
        "cat {PROMPT_FILE} > {OUTPUT_FILE}; echo {ATTEMPT} >> {OUTPUT_FILE}",
        'sh -c \'echo "$(cat {PROMPT_FILE}){ATTEMPT}" > "{OUTPUT_FILE}"\'',
        "sh <<X # it's\necho \"$(cat '{PROMPT_FILE}'){ATTEMPT}\" > {OUTPUT_FILE}\nX",
    ],
)
def test_fill__paths_and_numbers_stand_anywhere(tmp_path: Path, script: str) -> None:
    prompt, output = tmp_path / "prompt.txt", tmp_path / "output.txt"
    prompt.write_text("try ")
    run(tmp_path, script, PROMPT_FILE=str(prompt), OUTPUT_FILE=str(output), ATTEMPT="2")
    assert output.read_text() == "try 2\n"


@pytest.mark.parametrize(
    "command",
    [
        'agent "Answer: {PROMPT}"',
        "agent 'Answer: {PROMPT}'",
        'sh -c "agent {PROMPT}"',
        "bash -lc 'agent {PROMPT}'",
        'agent "$(cat {PROMPT})"',
        'agent "\\"{PROMPT}"',
        "agent 'unclosed {PROMPT}",
        'agent "{FILES}"',
    ],
)
def test_check__a_placeholder_among_other_text_in_quotes_is_refused(command: str) -> None:
    with pytest.raises(ValueError, match=r"stands among other text in quotes; .*\{PROMPT_FILE\}"):
        placeholders.check(command)


@pytest.mark.parametrize("command", ["", "  \n", [], [""], ["", "x"]], ids=str)
def test_check__an_empty_command_is_refused(command: str | Sequence[str]) -> None:
    with pytest.raises(ValueError, match="the command is empty"):
        placeholders.check(command)


@pytest.mark.parametrize(
    "command", ["agent {PROMT}", ["agent", "--file={FILE}"], "a {EVALID}", "a {GUIDELINES}"]
)
def test_check__a_misspelled_placeholder_is_an_error(command: str | list[str]) -> None:
    with pytest.raises(ValueError, match=r"is not a placeholder; write one of \{PROMPT\}"):
        placeholders.check(command)


@pytest.mark.parametrize(
    "command", ["echo ${PROMT}", "awk '{PRINT}'", "echo '{\"A\": {B}}' {{PROMT}}"]
)
def test_check__other_braces_are_left_alone(command: str) -> None:
    assert placeholders.check(command) == command


FILES = ["/r/a.md", "/r/with space/it's.md", "/r/$(touch pwned); {basename}.txt"]
SHOW = "import sys; print('|'.join(sys.argv[1:]))"


@pytest.mark.parametrize(
    ("files_format", "expected"),
    [
        ("{path}", [*FILES]),
        ("--file {path}", [word for path in FILES for word in ("--file", path)]),
        (
            '"{basename}":{path}',
            ["a.md:/r/a.md", f"it's.md:{FILES[1]}", f"$(touch pwned); {{basename}}.txt:{FILES[2]}"],
        ),
    ],
)
@pytest.mark.parametrize(
    "command",
    [["python3", "-c", SHOW, "x", "{FILES}"], f'python3 -c "{SHOW}" x {{FILES}}'],
    ids=str,
)
def test_fill__files_are_words_and_never_code(
    tmp_path: Path, command: str | Sequence[str], files_format: str, expected: list[str]
) -> None:
    placeholders.check(command)
    placeholders.check_format(files_format)
    words, variables = placeholders.fill(command, {}, placeholders.file_words(files_format, FILES))
    environment = {"PATH": os.environ["PATH"], **variables}
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, check=True, text=True
    )
    assert done.stdout.rstrip("\n").split("|") == ["x", *expected]
    assert list(tmp_path.iterdir()) == []


def test_fill__without_files_there_is_no_word() -> None:
    assert placeholders.fill(["agent", "{FILES}", "-"], {})[0] == ("agent", "-")
    assert placeholders.fill("agent {FILES} -", {})[0] == ("sh", "-c", "agent  -")


def test_check__files_in_a_longer_word_are_refused() -> None:
    with pytest.raises(ValueError, match="as a word of its own"):
        placeholders.check(["agent", "--files={FILES}"])


@pytest.mark.parametrize(
    ("files_format", "problem"),
    [("--file", "it does not name a file"), ("--file '{path}", "its quotes are wrong")],
)
def test_check_format__a_format_without_a_file_is_refused(files_format: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        placeholders.check_format(files_format)
