"""Draws the pictures of the README and the documentation: the comment and the report page of the
demo's review. Needs the tests' packages and their browser, at the top of the checkout:

PYTHONPATH=. uv run --with pillow --extra dev python .ci/pictures.py"""

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from markdown_it import MarkdownIt
from PIL import Image
from playwright.sync_api import Browser

from agentevals_action.reports import markdown
from agentevals_action.reports.html.report_page import report_page
from agentevals_action.reports.view.build import build_view
from agentevals_action.reports.view.links import Links
from agentevals_action.results.run_folder import read_folder
from agentevals_action.review.comparison.outcome import compare
from tests.support.browser import started

_IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
_REPOSITORY = "acme/support-agent"
#: About the style of GitHub.
_COMMENT = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; padding: 16px; width: 780px; background: #fff; color: #1f2328;
  font: 14px/1.5 -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; }
main { border: 1px solid #d1d9e0; border-radius: 6px; }
header { padding: 5px 16px; background: #f6f8fa; border-bottom: 1px solid #d1d9e0; color: #59636e; }
article { padding: 0 16px 16px; } blockquote { margin-top: 16px; }
a { color: #0969da; text-decoration: none; }
h3 { font-size: 1.25em; margin: 24px 0 16px; } h4 { margin: 24px 0 16px; } p { margin: 0 0 16px; }
code { padding: .2em .4em; background: #818b981f; border-radius: 6px; font-size: 85%; }
.alert { color: #d1242f; font-weight: 500; }
blockquote { margin: 0 0 16px; padding: 0 1em; border-left: 3px solid #d1242f; }
table { border-collapse: collapse; margin-bottom: 16px; }
th, td { border: 1px solid #d1d9e0; padding: 6px 13px; }
details { margin-bottom: 16px; } sub { font-size: 75%; }
</style><main><header><strong>github-actions</strong> bot commented now</header><article>"""


def _demo() -> Path:
    """The report folder of a new review of the demo."""
    command = (sys.executable, "-m", "agentevals_action", "demo")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    folder = re.search(r"(?m)^report: (.*)$", done.stdout + done.stderr)
    if not folder:
        raise SystemExit(f"the demo names no report:\n{done.stderr}")
    return Path(folder[1])


def _draw(browser: Browser, folder: Path, name: str, html: str, width: int, height: int) -> None:
    """A picture of a page; `height` 0 is all of it."""
    file = folder / f"{name}.html"
    file.write_text(html, encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": height or 100})
    page.goto(file.as_uri())
    picture = _IMAGES / f"{name}.png"
    page.screenshot(path=picture, full_page=not height)
    Image.open(picture).quantize(128).save(picture, optimize=True)  # a third of the size


def main() -> None:
    """Reviews the demo and draws both pictures."""
    review = compare(read_folder(_demo()))
    run_url = f"https://github.com/{_REPOSITORY}/actions/runs/42"
    links = Links(
        server_url="https://github.com",
        repository=_REPOSITORY,
        head_sha=review.run.head_sha,
        base_sha=review.run.base_sha,
        run_url=run_url,
        pull_request=42,
        branch="friendlier-answers",
        report_url=f"{run_url}/artifacts/4001",
    )
    view = build_view(review, links)
    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown.comment(view))
    body = body.replace("[!CAUTION]", "<p class=alert>Caution</p>")
    with TemporaryDirectory() as folder, started() as browser:
        _draw(browser, Path(folder), "comment", _COMMENT + body, 812, 0)
        _draw(browser, Path(folder), "report", report_page(view), 1080, 850)


if __name__ == "__main__":
    main()
