"""Where templates, examples and the schema are: inside an installed wheel, or at the top of a
checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """The packaged folder `templates`, `examples` or `schemas`."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parents[1] / name
