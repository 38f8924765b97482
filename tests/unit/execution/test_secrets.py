"""Which values of the environment are secrets: those in addresses, too."""

from pathlib import Path

import pytest

from agentevals_action.execution.secrets import keeping_secrets
from agentevals_action.model.suite import Suite
from agentevals_action.system.redaction import redact


@pytest.mark.parametrize(
    ("address", "text", "redacted"),
    [
        ("postgres://u:p%40ssw0rd!x@h", "p@ssw0rd!x p%40ssw0rd!x", "*** ***"),
        ("https://ghp_0123456789abcdefgh@github.com/a", "ghp_0123456789abcdefgh", "***"),
        ("https://ghp_0123456789abcdefgh:@h", "ghp_0123456789abcdefgh", "***"),
        ("https://ghp_0123456789abcdefgh:x@h", "ghp_0123456789abcdefgh", "***"),
        ("postgres://application@host.example.org/db", "application host.example.org", None),
        ("https://host.example.org/a-long-path-of-a-page", "a-long-path-of-a-page", None),
        ("http://[host", "http://[host", None),
    ],
)
def test_keeping_secrets__credentials_in_addresses(
    tmp_path: Path, address: str, text: str, redacted: str | None
) -> None:
    suite = Suite(path="evals/EVAL.yaml", name="suite", root=tmp_path, folder=tmp_path)
    with keeping_secrets([suite], lambda _root, _folder: {"SERVICE": address}, {}, ()):
        assert redact(text) == (redacted or text)
