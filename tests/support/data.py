"""The tables of cases in `tests/data`."""

import json
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parents[1] / "data"


def read(name: str) -> Any:
    """The content of a file of YAML or JSON. The reader in C takes a tenth of the time of that in
    Python, which each worker of a test run would need at its start."""
    text = (FOLDER / name).read_text("utf-8")
    return json.loads(text) if name.endswith(".json") else yaml.load(text, yaml.CSafeLoader)
