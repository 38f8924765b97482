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
    ("command", "is_shared"),
    [
        ("docker run --rm -i shop", True),
        (("docker", "run", "--rm", "-i", "-e", "KEY", "--name=x", "shop", "{PROMPT}"), True),
        ("docker run -e KEY=$KEY registry/shop:1", True),
        ("cd x && podman run -v cache:/cache shop", True),
        (("sh", "-c", "docker run shop"), True),
        ('docker run --rm -i "$(cat .image)"', False),
        ('docker run -v "$PWD:/app" python:3.13 python3 /app/agent.py', False),
        (("docker", "run", "--mount=type=bind,source=.,target=/app", "python"), False),
        ("docker run shop@sha256:00", False),
        ("docker compose run --rm agent", False),
        ("grep docker run.txt", False),
    ],
    ids=str,
)
def test_check__an_image_is_one_of_each_side(command: Command, is_shared: bool) -> None:
    if not is_shared:
        assert placeholders.check(command) == command
        return
    with pytest.raises(ValueError, match=r"would run the image `(registry/shop:1|shop)`.*iidfile"):
        placeholders.check(command)


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
        "echo ${PROMT} ${prompt}",
        "awk '{PRINT}'",
        "echo '{\"A\": {B}}'",
        "node -e '({ prompt }) => 1'",
    ],
)
def test_check__other_braces_are_left_alone(command: str) -> None:
    assert placeholders.check(command) == command
    assert placeholders.fill(command, {}) == (("sh", "-c", command), {})


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        *((command, "the command is empty") for command in ("", "  \n", (), ("",), ("", "x"))),
        *(
            (command, r"is not a placeholder; write one of \{PROMPT\}")
            for command in (
                *("agent {PROMT}", ("agent", "--file={FILE}"), "a {EVALID}", "a {{PROMT}}"),
                *(
                    "a {prompt}",
                    ("a", "{{PROMPT}}"),
                    "a {{ prompt }}",
                    "a {Prompt_File}",
                    "a {input}",
                ),
            )
        ),
        (("agent", "--files={FILES}"), "as a word of its own"),
        *(
            (command, r"stands among other text in quotes; .*\{PROMPT_FILE\}")
            for command in (
                'agent "Answer: {PROMPT}"',
                "agent 'Answer: {PROMPT}'",
                'sh -c "agent {PROMPT}"',
                'agent "$(cat {PROMPT})"',
                'agent "\\"{PROMPT}"',
                "agent 'unclosed {PROMPT}",
                'agent "{FILES}"',
            )
        ),
    ],
    ids=str,
)
def test_check__refused(command: Command, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        placeholders.check(command)


@pytest.mark.parametrize(
    ("files_format", "problem"),
    [("--file", "it does not name a file"), ("--file '{path}", "its quotes are wrong")],
)
def test_check_format__refused(files_format: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        placeholders.check_format(files_format)
