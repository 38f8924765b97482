"""The effective form of every conformance suite, every example, and the suites in `tests/data/valid`,
as `explain` prints it: messages, evaluators with their origins and options, targets, gates,
workspaces, and the files and the warnings of the suite."""

from pathlib import Path

import pytest

from agentevals_action.cli.commands.explain import effective_test
from agentevals_action.model.suite import Suite
from agentevals_action.settings import Settings
from agentevals_action.suites.documents.yaml_writer import write_yaml
from agentevals_action.suites.load import load_suite
from agentevals_action.suites.target_use import Catalog
from tests.conftest import Golden

ROOT = Path(__file__).resolve().parents[3]
CONFORMANCE = ROOT.parent / "shared/conformance"
EXAMPLES = {
    "example-first-suite.yaml": "examples/first-suite/EVAL.yaml",
    "example-demo.yaml": "examples/demo/base/evals/EVAL.yaml",
    "example-demo-refunds.yaml": "examples/demo/base/evals/refunds/EVAL.yaml",
    "example-mcp-server.yaml": "examples/mcp-server/base/evals/EVAL.yaml",
    "example-demo-triage.yaml": "examples/demo/base/evals/triage/EVAL.yaml",
}


VALID = ROOT / "tests/data/valid"


def effective_suite(path: Path, root: Path) -> str:
    suite = load_suite(path, root, Catalog())
    assert isinstance(suite, Suite), suite
    warnings = [str(warning) for warning in suite.warnings]
    tests = [effective_test(suite, test, Settings()) for test in suite.tests]
    files = [f"{file.path} ({file.role})" for file in suite.files]
    return write_yaml({"name": suite.name, "files": files, "warnings": warnings, "tests": tests})


def conformance_suites() -> list[str]:
    files = (*CONFORMANCE.glob("*/EVAL.yaml"), *CONFORMANCE.glob("*/*.eval.yaml"))
    return sorted(path.relative_to(CONFORMANCE).as_posix() for path in files)


@pytest.mark.skipif(
    not CONFORMANCE.is_dir(), reason="the conformance suites are not beside this checkout"
)
@pytest.mark.parametrize("path", conformance_suites())
def test_effective_suite__of_the_conformance_suites(path: str, golden: Golden) -> None:
    name = path.removesuffix("/EVAL.yaml").removesuffix(".eval.yaml").replace("/", "-")
    golden.check(
        f"effective/conformance-{name}.yaml", effective_suite(CONFORMANCE / path, CONFORMANCE)
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_effective_suite__of_the_examples(name: str, golden: Golden) -> None:
    golden.check(f"effective/{name}", effective_suite(ROOT / EXAMPLES[name], ROOT))


@pytest.mark.parametrize("case", sorted(path.name for path in VALID.iterdir()))
def test_effective_suite__of_every_form(case: str, golden: Golden) -> None:
    (path,) = (VALID / case).rglob("suite.yaml")
    golden.check(f"effective/valid-{case}.yaml", effective_suite(path, VALID / case))


def test_examples__are_all_here() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("examples/**/EVAL.yaml")}
    assert found == set(EXAMPLES.values())
