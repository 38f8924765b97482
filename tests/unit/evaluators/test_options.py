"""Options of each type that check nothing or have no meaning are refused, with the reason."""

from typing import Any

import pytest

from tests.support import cases, data


@pytest.mark.parametrize(("kind", "fields", "problem"), data.read("evaluator_options.yaml"))
def test_options__without_a_meaning_are_refused(
    kind: str, fields: dict[str, Any], problem: str
) -> None:
    assert problem in "; ".join(map(str, cases.errors(kind, fields)))


def test_pattern__that_is_nested_too_deeply_is_refused() -> None:
    (error,) = cases.errors("regex", {"value": "(?:" * 5000 + ")" * 5000})
    assert "not a valid regular expression" in str(error)
