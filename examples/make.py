"""Makes the example repository with its two pull requests, and pictures of what they get.

    python examples/make.py FOLDER

`FOLDER/repository` has the branches `main`, `red` and `green`. Of each pull request there are the
comment (`red.md`) and its picture (`red.png`), of the red one also the report page (`report.png`)
and the review on a terminal as a moving picture (`review.svg`). The pictures of README are made so:
they need `pip install -e '.[dev]'` and a browser."""

import html
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import cmarkgfm  # type: ignore[import-untyped]  # has no types
import pyte
from cmarkgfm.cmark import Options  # type: ignore[import-untyped]  # has no types
from playwright.sync_api import sync_playwright

DEMO = Path(__file__).parent / "demo"
PULL_REQUESTS = {"red": "Friendlier answers", "green": "The day of delivery in JSON"}
_REVIEW = ("agentevals-action", "review", "--base", "main", "--judge-floor", "specificity:0.7")
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_COLUMNS, _ROWS = 100, 34
_FRAME = 0.15  # seconds between two pictures of the terminal
_RUN = 5.0  # seconds of the moving picture until the end, however long the review took
_LAST = 6.0  # seconds that the end is shown
_COLORS = {
    "default": "#e6edf3",
    "red": "#ff7b72",
    "green": "#3fb950",
    "brown": "#d29922",
    "blue": "#79c0ff",
    "magenta": "#d2a8ff",
    "cyan": "#76e3ea",
    "brightblack": "#8b949e",
}
#: As GitHub shows a comment, near enough.
_STYLE = """
body { font: 14px/1.5 -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif;
  color: #1f2328; margin: 0; padding: 16px; width: 860px; box-sizing: border-box }
table { border-collapse: collapse; margin: 12px 0 } td, th { border: 1px solid #d1d9e0; padding: 5px 12px }
code { background: #818b981f; border-radius: 6px; padding: 2px 5px; font-size: 85% }
pre { background: #f6f8fa; border-radius: 6px; padding: 12px } pre code { background: none; padding: 0 }
blockquote { border-left: 4px solid #d1242f; margin: 0; padding: 2px 14px } a { color: #0969da }
blockquote.tip { border-color: #1a7f37 } h3 { margin: 18px 0 6px } details { margin: 8px 0 }
"""


def make(folder: Path) -> None:
    """Writes everything into the folder, which must not exist."""
    repository = folder / "repository"
    shutil.copytree(DEMO / "base", repository, ignore=shutil.ignore_patterns("__pycache__"))
    _git(repository, "init", "--quiet", "--initial-branch=main")
    _commit(repository, "The support agent and its suites")
    for name, title in PULL_REQUESTS.items():
        _git(repository, "checkout", "--quiet", "-b", name, "main")
        _git(repository, "apply", str((DEMO / f"{name}.patch").resolve()))
        _commit(repository, title)
        frames = list(_watch(repository, *_REVIEW))
        report = repository / "agentevals-report"
        shutil.copy(report / "comment.md", folder / f"{name}.md")
        _picture(_comment_page(folder / f"{name}.md"), folder / f"{name}.png")
        if name == "red":
            _picture(report / "report.html", folder / "report.png", height=900)
            (folder / "review.svg").write_text(_moving_picture(frames), encoding="utf-8")


def _git(folder: Path, *arguments: str) -> None:
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *author, *arguments], cwd=folder, check=True)  # noqa: S607


def _commit(folder: Path, message: str) -> None:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", message)


def _comment_page(comment: Path) -> Path:
    text = comment.read_text(encoding="utf-8")
    kind = "tip" if "[!TIP]" in text else "caution"
    text = re.sub(r"^> \[!\w+\]\n", "", text, flags=re.MULTILINE)
    body = cmarkgfm.github_flavored_markdown_to_html(text, options=Options.CMARK_OPT_UNSAFE)
    body = body.replace("<blockquote>", f'<blockquote class="{kind}">', 1)
    body = body.replace("<details>", "<details open>", 1)
    page = comment.with_suffix(".html")
    page.write_text(f"<meta charset=utf-8><style>{_STYLE}</style>{body}", encoding="utf-8")
    return page


def _picture(page: Path, picture: Path, height: int | None = None) -> None:
    """A picture of a page, of its first `height` pixels if that is given."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        sys.exit("no browser was found; install the package `chromium`")
    with sync_playwright() as playwright:
        window = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        view = window.new_page(viewport={"width": 1280 if height else 860, "height": height or 200})
        view.goto(page.resolve().as_uri())
        view.screenshot(path=picture, full_page=height is None)
        window.close()


def _watch(folder: Path, *command: str) -> Iterator[tuple[float, list[str]]]:
    """Runs a command on a terminal; yields the lines of the screen, as markup of SVG, whenever
    they have changed, with the seconds since the start."""
    main, side = pty.openpty()
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "COLUMNS": str(_COLUMNS),
        "LINES": str(_ROWS),
    }
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=side, stderr=side)
    os.close(side)
    screen = pyte.Screen(_COLUMNS, _ROWS)
    stream = pyte.ByteStream(screen)
    stream.feed(f"$ {' '.join(command)}\r\n".encode())
    shown: list[str] = []
    ended = False
    while not ended:
        until = time.monotonic() + _FRAME
        while not ended and (left := until - time.monotonic()) > 0:
            if select.select([main], [], [], left)[0]:
                try:
                    data = os.read(main, 65_536)
                except OSError:  # Linux: the other side is closed
                    data = b""
                ended = not data
                stream.feed(data)
        lines = [_markup(screen.buffer[row]) for row in range(_ROWS)]
        if lines != shown:
            shown = lines
            yield time.monotonic() - started, lines
    os.close(main)
    process.wait()


def _markup(line: "pyte.screens.StaticDefaultDict[int, pyte.screens.Char]") -> str:
    """A line of the screen as spans of one colour each."""
    spans: list[tuple[str, str]] = []
    for column in range(_COLUMNS):
        char = line[column]
        color = _COLORS.get(
            char.fg, f"#{char.fg}" if re.fullmatch("[0-9a-f]{6}", char.fg) else "#e6edf3"
        )
        style = f"{color};font-weight:bold" if char.bold else color
        if spans and spans[-1][0] == style:
            spans[-1] = (style, spans[-1][1] + char.data)
        else:
            spans.append((style, char.data))
    return "".join(
        f'<tspan style="fill:{style}">{html.escape(text)}</tspan>'
        for style, text in spans
        if text.strip() or text is not spans[-1][1]
    )


def _moving_picture(frames: Sequence[tuple[float, list[str]]]) -> str:
    """An SVG that shows one frame after another, for ever."""
    first_change, last_change = frames[0][0], frames[-1][0]
    pace = _RUN / max(last_change - first_change, 1)
    starts = [(seconds - first_change) * pace for seconds, _ in frames]
    total = starts[-1] + _LAST
    used = max(row for _, lines in frames for row, line in enumerate(lines) if line) + 1
    parts, styles = [], []
    for number, (start, (_, lines)) in enumerate(zip(starts, frames, strict=True)):
        end = starts[number + 1] if number + 1 < len(starts) else total
        first, last = 100 * start / total, 100 * end / total
        styles.append(
            f"@keyframes f{number}{{0%,{max(first - 0.01, 0):.2f}%{{visibility:hidden}}"
            f"{first:.2f}%,{last - 0.01:.2f}%{{visibility:visible}}{last:.2f}%,100%{{visibility:hidden}}}}"
            f"#f{number}{{animation:f{number} {total:.2f}s step-end infinite}}"
        )
        texts = "".join(
            f'<text x="16" y="{30 + 18 * row}">{line}</text>'
            for row, line in enumerate(lines)
            if line
        )
        parts.append(f'<g id="f{number}">{texts}</g>')
    height = 30 + 18 * used
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_COLUMNS * 8 + 32} {height}" role="img">'
        "<title>A review on a terminal: two sides run, then the tests that got worse</title>"
        f"<style>text{{font:13.3px ui-monospace,Menlo,Consolas,monospace;white-space:pre}}{''.join(styles)}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/make.py FOLDER")
    make(Path(sys.argv[1]))
