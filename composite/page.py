"""Copies the report page to a file with the name of its artifact: an artifact that is not an
archive is named like its file."""

import os
import shutil
from pathlib import Path

from agentevals_action.github.report_artifact import report_name, why_unsupported


def main() -> None:
    """Writes the output `path`; without a page, or where GitHub does not take it, none."""
    environment = os.environ
    page = Path(environment["GITHUB_WORKSPACE"], environment["REPORT_DIR"], "report.html")
    if reason := why_unsupported(environment["GITHUB_SERVER_URL"]):
        print(f"report: not uploaded, because {reason}")
    elif page.is_file():
        run, attempt = environment["GITHUB_RUN_ID"], environment["GITHUB_RUN_ATTEMPT"]
        name = report_name(environment["COMMENT_ID"], int(run), int(attempt))
        copy = shutil.copyfile(page, Path(environment["RUNNER_TEMP"], name))
        with Path(environment["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as outputs:
            outputs.write(f"path={copy}\n")


if __name__ == "__main__":
    main()
