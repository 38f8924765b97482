"""Writes the table of prices anew, for a developer of the action:

uv run --with litellm python -m agentevals_action.cli.update_prices [LIST]"""

import json
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import click

from agentevals_action.targets.prices import table, update

_PACKAGED = "litellm/model_prices_and_context_window_backup.json"


@click.command()
@click.argument("path", metavar="[LIST]", required=False, type=click.Path(path_type=Path))
@click.option("--to", type=click.Path(path_type=Path), help="Another file than the package's own.")
def main(path: Path | None, to: Path | None) -> None:
    """Take the prices from LIST, a copy of LiteLLM's model_prices_and_context_window.json; by
    default from the installed package litellm, which is not imported."""
    source = path.name if path else "litellm"
    if path is None:
        try:
            package = distribution("litellm")
        except PackageNotFoundError:
            problem = "litellm is not installed; install it, or name a copy of its list of prices"
            raise click.ClickException(problem) from None
        path, source = Path(str(package.locate_file(_PACKAGED))), f"litellm {package.version}"
    try:
        listed = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{path} cannot be read: {error}") from None
    text = update.make_table(listed, source, datetime.now(UTC).date().isoformat())
    (to or Path(table.__file__).with_name("table.json")).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
