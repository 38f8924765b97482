"""A command on a terminal of its own, as a person sees it: the screen, line by line."""

import os
import pty
import signal
import termios
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pyte

from tests.support import command

#: Lines that are kept, more than any command here prints; the command sees `lines` of the terminal.
_KEPT = 300


def _lines(screen: pyte.Screen) -> list[str]:
    return "\n".join(line.rstrip() for line in screen.display).rstrip("\n").split("\n")


def written_to(
    folder: Path, *arguments: str, columns: int = 100, env: Mapping[str, str] | None = None
) -> str:
    """What a command writes to a terminal on both streams, with what it erases again."""
    with Terminal(folder, *arguments, columns=columns, env=env) as terminal:
        terminal.read_to_end()
        return terminal.written.decode()


def screen_after(
    folder: Path, *arguments: str, columns: int = 100, env: Mapping[str, str] | None = None
) -> list[str]:
    """The lines that a terminal shows when a command has ended."""
    with Terminal(folder, *arguments, columns=columns, env=env) as terminal:
        return terminal.read_to_end()


class Terminal(AbstractContextManager["Terminal"]):
    """A command that runs on both streams of a terminal, and one that `has_keys` on its input, too.
    `written` is all that it wrote."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        columns: int = 80,
        lines: int = 24,
        env: Mapping[str, str] | None = None,
        has_keys: bool = False,
    ) -> None:
        self._main, side = pty.openpty()
        self._screen = pyte.Screen(columns, _KEPT)
        self._stream = pyte.ByteStream(self._screen)
        self.written = b""
        self.resize(columns, lines)
        environ = command.environment({"TERM": "xterm-256color", **(env or {})})
        streams = (side, side, side) if has_keys else (side, side)
        self.process = command.start_into(folder, arguments, environ, streams)
        os.close(side)

    @property
    def lines(self) -> list[str]:
        """The lines of the screen now."""
        return _lines(self._screen)

    @property
    def shows_cursor(self) -> bool:
        return not self._screen.cursor.hidden

    def resize(self, columns: int, lines: int) -> None:
        termios.tcsetwinsize(self._main, (lines, columns))
        self._screen.resize(_KEPT, columns)

    @property
    def shows_keys(self) -> bool:
        """Whether the terminal shows what is typed."""
        return bool(termios.tcgetattr(self._main)[3] & termios.ECHO)

    def press(self, keys: str) -> None:
        """Types."""
        os.write(self._main, keys.encode())

    def read_until(self, condition: Callable[[list[str]], bool]) -> list[str]:
        """Reads until the lines of the screen are as wanted, and gives them."""
        while not condition(self.lines):
            assert self._read(), f"the command ended before: {self.lines}"
        return self.lines

    def read_to_end(self) -> list[str]:
        """Reads until the command ends, and gives the lines of the screen."""
        while self._read():
            pass
        self.process.wait(timeout=100)
        return self.lines

    def _read(self) -> bool:
        """Reads what comes next; False at the end, which Linux reports as EIO."""
        try:
            part = os.read(self._main, 65_536)
        except OSError:
            return False
        self.written += part
        self._stream.feed(part)
        return bool(part)

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.read_to_end()
        os.close(self._main)
