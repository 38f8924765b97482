import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentevals_action.targets.programs import placeholders

Command = str | tuple[str, ...]
TEXT = st.text(
    alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30
)
FILES = ("/r/a.md", "/r/with space/it's.md", "/r/$(touch pwned); {basename}.txt")
SHOW = "import sys; print('|'.join(sys.argv[1:]))"


def run(folder: Path, command: Command, files: Sequence[str] = (), **values: str) -> str:
    placeholders.check(command)
    words, variables = placeholders.fill(command, values, files)
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
        ("printf", "<%s>", "{PROMPT}"),
        ("printf", "%s", "<{PROMPT}>"),
    ],
    ids=str,
)
@settings(max_examples=10)
@given(TEXT)
def test_fill__any_text_is_one_word_and_never_code(
    tmp_path_factory: pytest.TempPathFactory, command: Command, prompt: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    for text in (prompt, f"'; \"$({prompt})`\n\\", "-e {PROMPT} $HOME *"):
        assert run(folder, command, PROMPT=text) == f"<{text}>"


@pytest.mark.parametrize(
    "script",
    [
        "echo {EVAL_ID}$(cat {PROMPT_FILE}) > {OUTPUT_FILE}; echo {ATTEMPT} >> {OUTPUT_FILE}",
        'sh -c \'echo "$AGENTEVALS_EVAL_ID$(cat {PROMPT_FILE})\n{ATTEMPT}" > "{OUTPUT_FILE}"\' '
        "{EVAL_ID}",
    ],
)
def test_fill__paths_and_numbers_stand_anywhere(tmp_path: Path, script: str) -> None:
    prompt, output = tmp_path / "prompt.txt", tmp_path / "output.txt"
    prompt.write_text(" try")
    paths = {"PROMPT_FILE": str(prompt), "OUTPUT_FILE": str(output)}
    run(tmp_path, script, **paths, ATTEMPT="2", EVAL_ID="a b")
    assert output.read_text() == "a b try\n2\n"


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
    "command", [("python3", "-c", SHOW, "x", "{FILES}"), f'python3 -c "{SHOW}" x {{FILES}}']
)
def test_fill__files_are_words_and_never_code(
    tmp_path: Path, command: Command, files_format: str, expected: list[str]
) -> None:
    words = placeholders.file_words(placeholders.check_format(files_format), FILES)
    assert run(tmp_path, command, words).rstrip("\n").split("|") == ["x", *expected]
    assert run(tmp_path, command) == "x\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        # Braces that are no placeholders.
        "echo ${PROMT} ${prompt}",
        "awk '{PRINT}'",
        "echo '{\"A\": {B}}'",
        "node -e '({ prompt }) => 1'",
        # Images of which each side has its own.
        'docker run --rm -i "$(cat .image)"',
        'docker run -v "$PWD:/app" python:3.13 python3 /app/agent.py',
        "docker run --mount=type=bind,source=.,target=/app python",
        "docker run shop@sha256:00",
        "docker compose run --rm agent",
        "grep docker run.txt",
    ],
)
def test_check__other_commands_are_left_alone(command: str) -> None:
    assert placeholders.check(command) == command
    assert placeholders.fill(command, {}) == (("sh", "-c", command), {})
