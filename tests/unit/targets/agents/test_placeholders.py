import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentevals_action.targets.agents import placeholders

HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "'\"$(touch pwned)\"'",
    "\\'; touch pwned #",
    "a\ntouch pwned\n",
    "$HOME ${HOME} * ~ !!",
    "&& touch pwned",
    "-e --help",
    "",
    "{PROMPT} {EVAL_ID}",
    "${{ SECRET }}",
    "EOF\ntouch pwned\n",
]


def run(tmp_path: Path, command: str | Sequence[str], prompt: str, eval_id: str = "first") -> str:
    placeholders.check(command)
    values = {
        "PROMPT": prompt,
        "PROMPT_FILE": str(tmp_path / "p"),
        "OUTPUT_FILE": str(tmp_path / "o"),
        "EVAL_ID": eval_id,
        "ATTEMPT": "2",
    }
    words, variables = placeholders.fill(command, values)
    done = subprocess.run(
        words,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": "/home", **variables},
        capture_output=True,
        check=True,
    )
    assert not (tmp_path / "pwned").exists()
    return done.stdout.decode()


@pytest.mark.parametrize(
    "command",
    [
        "printf '<%s>' {PROMPT}",
        "printf '<%s>' '{PROMPT}'",
        'printf "<%s>" "{PROMPT}"',
        "printf %s \"<\"{PROMPT}'>'",
        "printf '<%s>' $(printf %s x >/dev/null; echo) {PROMPT}",
        "X={PROMPT}; printf '<%s>' \"$X\"",
        "# it's a comment with {PROMPT}\nprintf '<%s>' {PROMPT}",
        "printf '<%s>' \"a\\\"b\" >/dev/null; printf '<%s>' {PROMPT}",
        ["sh", "-c", "printf '<%s>' {PROMPT}"],
        ["/bin/sh", "-e", "-u", "-c", "printf '<%s>' {PROMPT}", "sh", "ignored"],
        ["printf", "<%s>", "{PROMPT}"],
        ["printf", "%s", "<{PROMPT}>"],
        ["sh", "-c", 'printf "<%s>" "$1"', "sh", "{PROMPT}"],
        ["python3", "-c", "import sys; sys.stdout.write(f'<{sys.argv[1]}>')", "{PROMPT}"],
    ],
    ids=str,
)
def test_fill__a_prompt_is_one_word_and_never_code(
    tmp_path: Path, command: str | Sequence[str]
) -> None:
    outputs = [run(tmp_path, command, prompt) for prompt in HOSTILE]
    assert outputs == [f"<{prompt}>" for prompt in HOSTILE]


@settings(max_examples=60)
@given(
    st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
)
def test_fill__any_text_comes_through_a_shell_unchanged(
    tmp_path_factory: pytest.TempPathFactory, prompt: str
) -> None:
    assert (
        run(tmp_path_factory.getbasetemp(), "printf '<%s>' --x={PROMPT}", prompt)
        == f"<--x={prompt}>"
    )


def test_fill__the_other_placeholders(tmp_path: Path) -> None:
    output = run(
        tmp_path,
        "echo {PROMPT_FILE} '{OUTPUT_FILE}' \"fixtures/{EVAL_ID}.txt\" {ATTEMPT}",
        "",
        "case-1",
    )
    assert output == f"{tmp_path}/p {tmp_path}/o fixtures/case-1.txt 2\n"


def test_fill__paths_of_ours_may_stand_in_a_nested_script(tmp_path: Path) -> None:
    assert run(tmp_path, "sh -c 'echo {OUTPUT_FILE}'", "") == f"{tmp_path}/o\n"


@pytest.mark.parametrize("eval_id", HOSTILE)
def test_fill__a_hostile_test_id_is_one_word_or_refused(tmp_path: Path, eval_id: str) -> None:
    assert run(tmp_path, "printf '<%s>' a/{EVAL_ID}.txt", "", eval_id) == f"<a/{eval_id}.txt>"
    assert run(tmp_path, ["printf", "<%s>", "a/{EVAL_ID}.txt"], "", eval_id) == f"<a/{eval_id}.txt>"
    for command in (
        'sh -c "printf x a/{EVAL_ID}.txt"',
        ["python3", "-c", "print('{EVAL_ID}')"],
        "ssh host run {EVAL_ID}",
    ):
        with pytest.raises(ValueError, match="EVAL_ID"):
            run(tmp_path, command, "", eval_id)


@pytest.mark.parametrize(
    "command",
    [
        'agent "Answer: {PROMPT}"',
        "agent 'Answer: {PROMPT}'",
        'sh -c "agent {PROMPT}"',
        "bash -lc 'agent {PROMPT}'",
        'agent "$(cat {PROMPT})"',
        "agent $'it\\'s {PROMPT}'",
        'agent "\\"{PROMPT}"',
    ],
)
def test_check__a_prompt_among_other_text_in_quotes_is_refused(command: str) -> None:
    with pytest.raises(ValueError, match="stands among other text in quotes"):
        placeholders.check(command)


@pytest.mark.parametrize(
    "command",
    [
        "bash -c {PROMPT}",
        "bash -e -c '{PROMPT}'",
        "python3 -c {PROMPT}",
        "cd x && node --eval {PROMPT}",
        "ssh host agent {PROMPT}",
        "eval agent {PROMPT}",
        "sh <<EOF\nagent {PROMPT}\nEOF",
        ["python3", "-c", "print('{PROMPT}')"],
        ["python3", "-c", "{PROMPT}"],
        ["node", "--eval={PROMPT}"],
        ["env", "sh", "-c", "agent {PROMPT}"],
        ["docker", "run", "image", "bash", "-lc", "agent {PROMPT}"],
        ["ssh", "host", "agent", "{PROMPT}"],
    ],
    ids=str,
)
def test_check__a_prompt_that_would_be_code_is_refused(command: str | Sequence[str]) -> None:
    with pytest.raises(ValueError, match="would be read as code"):
        placeholders.check(command)


@pytest.mark.parametrize(
    "command",
    [
        "python3 agent.py -p {PROMPT}",
        "node agent.js -e {PROMPT} --x='y'",
        ["python3", "agent.py", "-c", "{PROMPT}"],
        ["claude", "-p", "Answer briefly: {PROMPT}"],
        ["bash", "run.sh", "-c", "{PROMPT}"],
        "agent <<< {PROMPT}",
        "agent ${PROMPT} {OTHER} ${{PROMPT}}",
    ],
    ids=str,
)
def test_check__what_is_safe_is_taken(command: str | Sequence[str]) -> None:
    placeholders.check(command)


def test_fill__a_script_file_gets_the_prompt_itself() -> None:
    assert placeholders.fill(["bash", "run.sh", "-c", "{PROMPT}"], {"PROMPT": "$(x)"}) == (
        ("bash", "run.sh", "-c", "$(x)"),
        {},
    )


@pytest.mark.parametrize("command", ["", "  \n", [], [""], ["", "x"]], ids=str)
def test_check__an_empty_command_is_refused(command: str | Sequence[str]) -> None:
    with pytest.raises(ValueError, match="the command is empty"):
        placeholders.check(command)


def test_check__guidelines_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"`\{GUIDELINES\}` is not supported; .* in \{FILES\}"):
        placeholders.check("agent --guide={GUIDELINES}")


@pytest.mark.parametrize(
    ("command", "meant"),
    [("agent {PROMT}", "PROMPT"), (["agent", "--file={FILE}"], "FILES"), ("a {EVALID}", "EVAL_ID")],
)
def test_check__a_misspelled_placeholder_is_an_error(command: str | list[str], meant: str) -> None:
    with pytest.raises(ValueError, match=rf"is no placeholder; did you mean `\{{{meant}\}}`"):
        placeholders.check(command)


@pytest.mark.parametrize(
    "command", ["echo ${PROMT}", "awk '{PRINT}'", "echo '{\"A\": {B}}' {{PROMT}}"]
)
def test_check__other_braces_are_none_of_ours(command: str) -> None:
    assert placeholders.check(command) == command


FILES = ["/r/a.md", "/r/with space/it's.md", "/r/$(touch pwned); {basename}.txt"]
SHOW = "import sys; print('|'.join(sys.argv[1:]))"


@pytest.mark.parametrize(
    ("files_format", "expected"),
    [
        ("{path}", [*FILES]),
        ("--file {path}", [word for path in FILES for word in ("--file", path)]),
        ("--file={path}", [f"--file={path}" for path in FILES]),
        ("'{path}'", [*FILES]),
        (
            '"{basename}":{path}',
            ["a.md:/r/a.md", f"it's.md:{FILES[1]}", f"$(touch pwned); {{basename}}.txt:{FILES[2]}"],
        ),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ["python3", "-c", SHOW, "x", "{FILES}"],
        f'python3 -c "{SHOW}" x {{FILES}}',
        ["sh", "-c", f'python3 -c "{SHOW}" x {{FILES}}'],
    ],
    ids=str,
)
def test_fill__files_are_words_and_never_code(
    tmp_path: Path, command: str | Sequence[str], files_format: str, expected: list[str]
) -> None:
    placeholders.check(command)
    placeholders.check_format(files_format)
    words, variables = placeholders.fill(command, {}, placeholders.file_words(files_format, FILES))
    done = subprocess.run(
        words,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout.rstrip("\n").split("|") == ["x", *expected]
    assert list(tmp_path.iterdir()) == []


def test_fill__without_files_there_is_no_word() -> None:
    assert placeholders.fill(["agent", "{FILES}", "-"], {})[0] == ("agent", "-")
    assert placeholders.fill("agent {FILES} -", {})[0] == ("sh", "-c", "agent  -")


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ('agent "{FILES}"', r"`\{FILES\}` stands in quotes"),
        ("sh -c 'agent {FILES}'", r"`\{FILES\}` stands in quotes"),
        ("ssh host agent {FILES}", "would be read as code"),
        (["ssh", "host", "agent", "{FILES}"], "would be read as code"),
        (["python3", "-c", "{FILES}"], "would be read as code"),
        (["agent", "--files={FILES}"], "as a word of its own"),
    ],
    ids=str,
)
def test_check__files_where_they_cannot_be_put_are_refused(
    command: str | Sequence[str], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        placeholders.check(command)


@pytest.mark.parametrize(
    ("files_format", "problem"),
    [("--file", "it does not name a file"), ("--file '{path}", "its quotes are wrong")],
)
def test_check_format__a_format_without_a_file_is_refused(files_format: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        placeholders.check_format(files_format)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            "python3 agent.py --config=conf.json < in.txt",
            "python3 /s/agent.py --config=/s/conf.json < /s/in.txt",
        ),
        (
            "./run.sh; agent.py 'agent.py' \"agent.py\" xagent.py {PROMPT} # agent.py",
            "/s/run.sh; /s/agent.py 'agent.py' \"agent.py\" xagent.py {PROMPT} # agent.py",
        ),
        ("agent.py agent.py", "agent.py agent.py"),
        (
            ["python3", "agent.py", "--config=conf.json", "x"],
            ("python3", "/s/agent.py", "--config=/s/conf.json", "x"),
        ),
        (["agent.py", "agent.py"], ("agent.py", "/s/agent.py")),
        (["./run.sh"], ("/s/run.sh",)),
        (["sh", "-c", "cd . && ./run.sh"], ("sh", "-c", "cd . && /s/run.sh")),
        (["sh", "agent.py"], ("sh", "/s/agent.py")),
    ],
    ids=str,
)
def test_rename_files__words_that_are_files(
    command: str | Sequence[str], expected: str | tuple[str, ...]
) -> None:
    known = {
        "agent.py": "/s/agent.py",
        "conf.json": "/s/conf.json",
        "in.txt": "/s/in.txt",
        "./run.sh": "/s/run.sh",
    }
    assert placeholders.rename_files(command, lambda name: known.get(name, name)) == expected


def test_uses__only_complete_placeholders() -> None:
    assert placeholders.uses("agent {PROMPT_FILE}", "PROMPT_FILE")
    assert not placeholders.uses("agent {PROMPT_FILE} ${PROMPT}", "PROMPT")
