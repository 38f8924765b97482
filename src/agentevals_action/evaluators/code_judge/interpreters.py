"""Commands of interpreters that load modules and configuration from the current folder, which the
agent under test may write: they get these from the copies of the judges' files instead."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath

_PYTHON = re.compile(r"python[\d.]*")
#: Options of Python that take the next word, and those that keep the current folder away.
_TAKES_WORD, _ISOLATED = ("-W", "-X"), ("-I", "-P")
_BUN_SUFFIXES = (".ts", ".js", ".mts", ".mjs", ".cts", ".cjs", ".tsx", ".jsx")


def without_current_folder(
    words: Sequence[str], folder: Path, copy_of: Callable[[Path], Path]
) -> list[str]:
    """The words of a command that runs in `folder` (absolute). `copy_of` returns the copy of a file
    or folder; it returns the path itself where there is none.

    Attack: an agent writes `bunfig.toml` (`preload`), `.env` or a `json.py` into the folder in
    which its judge runs."""
    program = PurePath(words[0]).name
    if program == "bun" and (words[1:2] == ["run"] or words[-1].endswith(_BUN_SUFFIXES)):
        config, variables = (_copy_or_nothing(folder / name, copy_of) for name in _BUN_FILES)
        return [words[0], f"--config={config}", f"--env-file={variables}", *words[1:]]
    if _PYTHON.fullmatch(program) and (copy := copy_of(folder)) != folder:
        return _python(words, copy)
    return list(words)


#: What Bun loads from the current folder: https://bun.sh/docs/runtime/bunfig
_BUN_FILES = ("bunfig.toml", ".env")


def _copy_or_nothing(path: Path, copy_of: Callable[[Path], Path]) -> str:
    copy = copy_of(path)
    return os.devnull if copy == path else str(copy)


def _python(words: Sequence[str], folder: Path) -> list[str]:
    """A command of Python with `-m` or `-c`, whose modules are searched in `folder`."""
    index = 1
    while index < len(words) and words[index].startswith("-"):
        option = words[index]
        if option in _ISOLATED:
            break
        if option in ("-m", "-c") and index + 1 < len(words):
            # `sys` is built in; any other module could be one of the current folder.
            start = f"import sys; sys.path[:1] = [{str(folder)!r}]; "
            run = (
                "import runpy; sys.argv[:1] = []; "
                "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
            )
            code = words[index + 1]
            if option == "-c":
                run = f"exec(compile({code!r}, '<string>', 'exec'))"
            after = words[index + 1 :] if option == "-m" else words[index + 2 :]
            return [*words[:index], "-c", start + run, *after]
        index += 2 if option in _TAKES_WORD else 1
    return list(words)
