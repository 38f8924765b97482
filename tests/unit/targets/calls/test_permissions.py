"""Which variables the targets of a pull request may use."""

from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.targets.calls.client import resolve_target
from agentevals_action.targets.calls.permissions import Permissions
from agentevals_action.targets.models.http_client import get_origin
from tests.support import targets

HEAD, BASE = Path("/head"), Path("/base")
KNOWN = {
    "OPENAI_API_KEY": "sk-1",
    "ANTHROPIC_API_KEY": "sk-2",
    "AZURE_OPENAI_API_KEY": "az",
    "SECRET": "s",
    "HOST": "api.acme.com",
}
OPENAI = {"provider": "openai", "model": "m"}
AZURE = {"provider": "azure", "endpoint": "https://evil.openai.azure.com", "deployment": "m"}
ACME = {"provider": "http", "url": "https://api.acme.com/ask"}
HEADERS = {"headers": {"X-Key": "${{ SECRET }}"}}
PERMISSIONS = Permissions(
    BASE, frozenset({"LISTED"}), frozenset({("SECRET", get_origin(ACME["url"])), ("SECRET", "cli")})
)


def refused(definition: dict[str, Any], root: Path = HEAD) -> str:
    target = targets.target(definition)
    variables = {**KNOWN, "LISTED": "l"}
    try:
        PERMISSIONS.check(resolve_target(target, variables), variables, root)
    except AttemptError as error:
        return str(error).removeprefix("the target default uses ").partition(", which")[0]
    return ""


@pytest.mark.parametrize(
    ("definition", "names"),
    [
        # What the base sends there, and a vendor's own key.
        (OPENAI, ""),
        ({**OPENAI, "api_key": "${{ OPENAI_API_KEY }}"}, ""),
        ({**OPENAI, "base_url": "https://api.openai.com/v1/"}, ""),
        ({**OPENAI, "base_url": "https://other.com", "api_key": "${{ LISTED }}"}, ""),
        ({**ACME, **HEADERS}, ""),
        (
            {**ACME, **HEADERS, "url": "https://API.acme.com:443/other?q={{ prompt | urlencode }}"},
            "",
        ),
        ({**ACME, **HEADERS, "url": "https://api.acme.com/${{ SECRET }}"}, ""),
        ({"provider": "cli", "command": ["agent", "${{ SECRET }}"]}, ""),
        ({"provider": "mock", "response": "a"}, ""),
        # Another variable, and another address.
        ({**OPENAI, "api_key": "${{ SECRET }}"}, "SECRET"),
        ({**OPENAI, "model": "${{ ANTHROPIC_API_KEY }}"}, "ANTHROPIC_API_KEY"),
        ({**OPENAI, "base_url": "https://evil.com"}, "OPENAI_API_KEY"),
        ({**OPENAI, "base_url": "http://api.openai.com/v1"}, "OPENAI_API_KEY"),
        ({**OPENAI, "base_url": "https://api.openai.com:444"}, "OPENAI_API_KEY"),
        ({**OPENAI, "base_url": "https://api.openai.com.evil.com"}, "OPENAI_API_KEY"),
        ({**OPENAI, "base_url": "https://${{ HOST }}"}, "HOST and OPENAI_API_KEY"),
        (AZURE, "AZURE_OPENAI_API_KEY"),
        ({**ACME, **HEADERS, "url": "https://api.acme.com@evil.com/"}, "SECRET"),
        ({**ACME, **HEADERS, "url": "https://evil.com/?https://api.acme.com/"}, "SECRET"),
        ({"provider": "http", "url": "https://evil.com/${{ SECRET }}"}, "SECRET"),
        ({"provider": "http", "url": "https://${{ SECRET }}.evil.com/"}, "SECRET"),
        ({"provider": "claude-cli", "args": ["${{ SECRET }}"]}, "SECRET"),
        ({"provider": "mock", "response": "${{ SECRET }}"}, "SECRET"),
    ],
    ids=str,
)
def test_check__refuses_another_variable_and_another_address(
    definition: dict[str, Any], names: str
) -> None:
    assert refused(definition) == names
    assert refused(definition, BASE) == ""
