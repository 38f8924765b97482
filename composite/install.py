"""Makes the action's own virtual environment on the runner: hashed libraries, then the action
itself, built with hashed tools."""

import os
import subprocess
import sys
import venv
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parents[1]


def install(folder: Path) -> None:
    """Installs everything into a fresh environment; CalledProcessError when pip refuses."""
    venv.create(folder, clear=True, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-I", "-m", "pip", "--disable-pip-version-check"]
    for name in ("requirements.txt", "requirements-build.txt"):
        # Wheels alone: building a library here would bring tools that nobody has hashed.
        words = [
            "install",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--require-hashes",
            "--requirement",
            str(ROOT / name),
        ]
        subprocess.run([*pip, *words], check=True)
    subprocess.run(
        [*pip, "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", str(ROOT)],
        check=True,
    )
    subprocess.run([*pip, "check"], check=True)


def main() -> None:
    """Installs, or ends the step in words that say what to put into the workflow."""
    if sys.version_info < OLDEST:
        found = ".".join(str(part) for part in sys.version_info[:3])
        sys.exit(
            f"::error::agentevals-action needs Python 3.11 or later and found {found}: "
            "put actions/setup-python before this step"
        )
    if os.name != "posix":
        sys.exit(
            "::error::agentevals-action runs on Linux and macOS runners: choose one in runs-on"
        )
    install(Path(os.environ["RUNNER_TEMP"], "agentevals-action"))


if __name__ == "__main__":
    main()
