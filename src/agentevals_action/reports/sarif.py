"""`results.sarif`: failed gates and invalid suites as SARIF 2.1.0, ready for code scanning.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html; what GitHub reads:
https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning"""

import hashlib
import json
from typing import Any
from urllib.parse import quote

from agentevals_action import __version__
from agentevals_action.model.report import Annotation
from agentevals_action.reports.annotations import failed_gates, invalid_suites
from agentevals_action.reports.view.models import ReportView

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_MOST = 5_000  # results; GitHub reads 25,000 and shows 5,000
_RULES = {
    "required-gate": "A required gate of a test failed",
    "invalid-suite": "A suite is invalid",
}


def sarif(view: ReportView) -> str:
    """The log. The fingerprint of a result consists of its suite, test and gate, so that code
    scanning recognizes it after its line moved."""
    invalid = [
        _result("invalid-suite", annotation, (annotation.path, annotation.message))
        for annotation in invalid_suites(view)
    ]
    gates = [
        _result("required-gate", failed.annotation, (failed.suite, failed.test, failed.gate))
        for failed in failed_gates(view)
    ]
    driver = {
        "name": "agentevals-action",
        "version": __version__,
        "informationUri": "https://github.com/org/agentevals-action",
        "rules": [{"id": key, "shortDescription": {"text": text}} for key, text in _RULES.items()],
    }
    run = {"tool": {"driver": driver}, "results": [*invalid, *gates][:_MOST]}
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _result(rule: str, annotation: Annotation, identity: tuple[str, ...]) -> dict[str, Any]:
    digest = hashlib.sha256(json.dumps([rule, *identity]).encode()).hexdigest()
    artifact = {"uri": quote(annotation.path, errors="replace"), "uriBaseId": "%SRCROOT%"}
    location = {"artifactLocation": artifact, "region": {"startLine": max(annotation.line, 1)}}
    return {
        "ruleId": rule,
        "level": "error",
        "message": {"text": annotation.message},
        "locations": [{"physicalLocation": location}],
        "partialFingerprints": {"agentevals/v1": digest},
    }
