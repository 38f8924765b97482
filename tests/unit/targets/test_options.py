"""Fields of targets that are not valid, or have no meaning, are refused, with the reason."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import targets

REFUSED = Path(__file__).parents[2] / "data" / "target_options.yaml"


@pytest.mark.parametrize(
    ("provider", "fields", "problem"), yaml.safe_load(REFUSED.read_text(encoding="utf-8"))
)
def test_options__without_a_meaning_are_refused(
    provider: str, fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match="`") as caught:
        targets.target({"provider": provider, **fields})
    assert problem in str(caught.value)
