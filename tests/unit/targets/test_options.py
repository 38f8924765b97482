"""Fields of targets that are not valid, or have no meaning, are refused, with the reason."""

from typing import Any

import pytest

from tests.support import data, targets


@pytest.mark.parametrize(("provider", "fields", "problem"), data.read("target_options.yaml"))
def test_options__without_a_meaning_are_refused(
    provider: str, fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match="`") as caught:
        targets.target({"provider": provider, **fields})
    assert problem in str(caught.value)
