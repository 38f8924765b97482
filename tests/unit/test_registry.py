"""Plug-ins by name, imported when they are asked for."""

import subprocess
import sys

import pytest

from agentevals_action import evaluators, providers
from agentevals_action.registry import Registry


def test_registry__is_a_mapping_in_the_order_given() -> None:
    found: Registry[object] = Registry("collections", {"b": ("abc", "Sized"), "a": ("abc", "Hashable")})

    assert list(found) == ["b", "a"]
    assert (len(found), "a" in found, "c" in found) == (2, True, False)
    assert found["a"].__name__ == "Hashable"
    with pytest.raises(KeyError):
        found["c"]


@pytest.mark.parametrize(("catalog", "name", "module"), [("evaluators", "script", "code_judge"), ("providers", "openai", "openai")])
def test_catalog__imports_a_plugin_when_it_is_asked_for(catalog: str, name: str, module: str) -> None:
    place = f"agentevals_action.{catalog}.{module}"
    program = (
        f"import sys\nfrom agentevals_action import {catalog}\n"
        f"found = {catalog}.catalog()\nassert {name!r} in found and {place!r} not in sys.modules\n"
        f"found[{name!r}]\nassert {place!r} in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_catalog__names_each_plugin_as_it_names_itself() -> None:
    assert all(name in (kind.type, *kind.aliases) for name, kind in evaluators.catalog().items())
    assert all(name == kind.provider.replace("-", "_") for name, kind in providers.catalog().items())
