"""What a test of pytest asks: a change moves the digests of the tests that use what it changes, and
of no others."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.model.path_patterns import read_rule
from agentevals_action.model.runner import Runner
from agentevals_action.runners.suites import find_runner_suites
from agentevals_action.suites.checkout import Checkout
from tests.support import suites

SUITE = "evals/test_shop.py"
SHOP = '''\
"""Tests of the shop."""
import json
from pathlib import Path

import pytest
from agent import answer
from helpers import polite, short
from more.shared import TestBase, test_imported

LIMIT = 30
CASES = json.loads((Path(__file__).parent / "data" / "cases.json").read_text())
FULL = {"days": LIMIT}


@pytest.fixture(name="shop")
def make_shop(stock):
    return {**stock, **FULL}


def check(text):
    assert polite(text)


def test_alone():
    assert "30" in answer("How long?")


@pytest.mark.parametrize("case", CASES)
def test_cases(case):
    check(answer(case))


@pytest.mark.usefixtures("clock")
class TestOrders:
    limit = 5

    def setup_method(self):
        self.shop = "open"

    def test_first(self, shop):
        assert answer("first")

    def test_second(self):
        assert short(answer("second"))

    class TestInner:
        def test_deep(self):
            assert answer("deep")


class TestBorrowed(TestBase):
    pass


@pytest.mark.parametrize(
    "question",
    [pytest.param("May I return it?", id="return"), pytest.param("Où?", id="où")],
)
def test_named(question, request):
    request.getfixturevalue("answers")


def test_file():
    assert open(f"evals/rows/{LIMIT}.txt").read() == answer("rows")


def test_prompt():
    assert answer(Path("prompts/system.md").read_text())


test_made = make_test = lambda: None
'''
FILES = {
    SUITE: SHOP,
    "evals/conftest.py": """\
import pytest
from stand import CLOCK

@pytest.fixture
def clock(): return CLOCK

@pytest.fixture
def stock(clock): return {"shoes": 1}

@pytest.fixture
def answers(): return ["yes"]
""",
    "evals/stand.py": "CLOCK = 12\n",
    "conftest.py": "import sys\n",
    "evals/helpers.py": """\
from agent import tone
WORDS = ("please", "thanks")
def polite(text): return any(word in text for word in WORDS)
def short(text): return len(text) < 80
""",
    "evals/more/__init__.py": "",
    "evals/more/shared.py": """\
def test_imported(): assert True
class TestBase:
    def test_inherited(self): assert 1
""",
    "evals/data/cases.json": '["a"]',
    "evals/rows/30.txt": "x",
    "prompts/system.md": "Be kind.",
    "src/agent.py": "def answer(text): return text\ndef tone(): pass\n",
}
TESTS = (
    *("test_alone", "test_cases[a]", "test_file", "test_prompt", "test_imported"),
    *("TestOrders::test_first", "TestOrders::test_second", "TestOrders::TestInner::test_deep"),
    *("TestBorrowed::test_inherited", "test_named[return]", r"test_named[o\xf9]"),
)
ORDERS = [test for test in TESTS if "TestOrders" in test]
NAMED = [test for test in TESTS if "test_named" in test]


def digests(
    root: Path, changes: Mapping[str, str], watch: Sequence[str] = ("src/**", "prompts/**")
) -> Mapping[str, str | None]:
    """The digest of each test after changes of the files."""
    files = {**FILES, **changes}
    suites.write(root, files)
    paths = tuple(sorted(files))
    path = next(path for path in (SUITE, "test_shop.py") if path in files)
    runner = Runner.model_validate({"name": "pytest", "results": "junit", "suites": [path]})
    found, _ = find_runner_suites(Checkout(root, root, paths, frozenset(paths)), [runner])
    described = Fingerprints([read_rule(rule) for rule in watch]).of_runner(found[path])
    described.read()
    return {test: described.function(test) for test in (*TESTS, "test_made", "test_none")}


def edited(path: str, *changes: tuple[str, str]) -> dict[str, str]:
    text = FILES[path]
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return {path: text}


def shop(*changes: tuple[str, str]) -> dict[str, str]:
    return edited(SUITE, *changes)


#: A change, and the tests that it concerns.
CHANGES: dict[str, tuple[dict[str, str], Sequence[str]]] = {
    "a comment": (shop(("    assert \"30\"", "    # why\n    assert \"30\"")), ()),
    "a docstring of the file": (shop(('"""Tests of the shop."""', '"""Tests."""')), ()),
    "a new test with a name, an import and a fixture of its own": (
        shop(
            ("LIMIT = 30\n", "LIMIT = 30\nMORE = 1\n"),
            ("from helpers import polite", "from helpers import WORDS, polite"),
            ("test_made", "def test_new(more):\n    assert MORE in WORDS\n\n\ntest_made"),
        ),
        (),
    ),
    "a test": (shop(('"30" in', '"60" in')), ["test_alone"]),
    "a decorator": (shop(('"case", CASES', '"case", CASES[:1]')), ["test_cases[a]"]),
    "a name": (shop(("LIMIT = 30", "LIMIT = 60")), ["TestOrders::test_first", "test_file"]),
    "a fixture": (shop(("**FULL}", '**FULL, "x": 1}')), ["TestOrders::test_first"]),
    "a fixture that is used automatically": (
        edited("evals/conftest.py", ("@pytest.fixture\ndef answers", "@pytest.fixture(autouse=True)\ndef answers")),
        TESTS,
    ),
    "a fixture of a fixture in another file": (
        edited("evals/conftest.py", ('"shoes": 1', '"shoes": 2')),
        ["TestOrders::test_first"],
    ),
    "a fixture by its name": (edited("evals/conftest.py", ('["yes"]', '["no"]')), NAMED),
    "what a fixture imports": ({"evals/stand.py": "CLOCK = 13\n"}, ORDERS),
    "a hook": ({"conftest.py": "import sys\ndef pytest_configure(config): pass\n"}, TESTS),
    "a statement": ({"conftest.py": "import sys\nsys.path.insert(0, 'x')\n"}, TESTS),
    "a helper of a helper": (edited("evals/helpers.py", ('"thanks"', '"thank you"')), ["test_cases[a]"]),
    "another helper": (edited("evals/helpers.py", ("80", "90")), ["TestOrders::test_second"]),
    "a method": (shop(('answer("second")', 'answer("2nd")')), ["TestOrders::test_second"]),
    "a nested method": (shop(('answer("deep")', 'answer("x")')), ["TestOrders::TestInner::test_deep"]),
    "what a class shares": (shop(("limit = 5", "limit = 6")), ORDERS),
    "an inherited test": (
        edited("evals/more/shared.py", ("assert 1", "assert 2")),
        ["TestBorrowed::test_inherited"],
    ),
    "an imported test": (
        edited("evals/more/shared.py", ("assert True", "assert False")),
        ["test_imported"],
    ),
    "a case": (shop(("May I return", "Can I return")), ["test_named[return]"]),
    "a case whose id is escaped": (shop(('"Où?"', '"Quand ?"')), [r"test_named[o\xf9]"]),
    "a new case": (shop(("[pytest.param", '[pytest.param("x", id="new"), pytest.param')), ()),
    "data": ({"evals/data/cases.json": '["a", "b"]'}, ["test_cases[a]"]),
    "data by a computed name": ({"evals/rows/30.txt": "y"}, ["test_file"]),
    "other data": ({"evals/other.json": "1"}, ()),
    "the agent": ({"src/agent.py": "def answer(text): return 1\n", "prompts/system.md": "x"}, ()),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_function__a_change_moves_what_uses_it(tmp_path: Path, name: str) -> None:
    change, expected = CHANGES[name]
    before, after = digests(tmp_path / "a", {}), digests(tmp_path / "b", change)
    assert all(before[test] and after[test] for test in TESTS)
    assert {test for test in TESTS if before[test] != after[test]} == set(expected)


UNKNOWN = {
    "a name that is computed": shop(('"30" in', 'globals()["answer"] and "30" in')),
    "a helper that cannot be read": {
        "evals/helpers.py": "def polite(:",
        **shop(('assert "30"', 'assert polite and "30"')),
    },
    "a file that cannot be read": shop(("LIMIT = 30", "LIMIT = = 30")),
    "a shared file that cannot be read": {"conftest.py": "x ="},
    "an expression without end": shop(('"30" in', f"{'-' * 50_000}1 in")),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_function__what_cannot_be_determined_is_unknown(tmp_path: Path, name: str) -> None:
    assert digests(tmp_path, UNKNOWN[name])["test_alone"] is None


def test_function__one_that_the_file_does_not_have_is_unknown(tmp_path: Path) -> None:
    found = digests(tmp_path, {})
    assert (found["test_made"], found["test_none"]) == (None, None)


#: Places of a module that tests import, the rules of `watch`, and whether it belongs to the tests.
MODULES = [
    ("evals/helpers.py", ("src/**",), True),
    ("evals/helpers.py", (), True),  # the agent is known: another import leads out of the folder
    ("evals/helpers.py", ("evals/helpers.py",), False),
    ("src/agent.py", (), False),
    ("src/agent.py", ("prompts/**",), False),
]


@pytest.mark.parametrize(("path", "watch", "is_helper"), MODULES)
def test_function__a_module_is_a_helper_or_the_agent(
    tmp_path: Path, path: str, watch: Sequence[str], is_helper: bool
) -> None:
    change = {
        path: FILES[path]
        .replace("def ", "LEVEL = 1\ndef ")
        .replace("(text): ", "(text, n=LEVEL): ")
    }
    before, after = digests(tmp_path / "a", {}, watch), digests(tmp_path / "b", change, watch)
    assert (before["test_cases[a]"] != after["test_cases[a]"]) == is_helper


@pytest.mark.parametrize("folder", ["", "evals/"])
def test_function__beside_the_tests_a_module_is_the_agent_unless_it_is_known_where_that_is(
    tmp_path: Path, folder: str
) -> None:
    text = "from agent import answer\ndef test_alone(): assert answer(1)\n"
    path = f"{folder}test_shop.py"
    files = dict.fromkeys(FILES, "") | {
        SUITE: "",
        path: text,
        f"{folder}agent.py": "answer = len\n",
    }
    change = {**files, f"{folder}agent.py": "answer = id\n"}
    for name in (SUITE, *FILES):
        if name not in (path, f"{folder}agent.py"):
            files.pop(name, None), change.pop(name, None)
    found = [
        alone(tmp_path / str(number), each, path) for number, each in enumerate((files, change))
    ]
    assert found[0] == found[1] is not None


def alone(root: Path, files: Mapping[str, str], path: str) -> str | None:
    """The digest of a test in a repository of these files, without rules."""
    suites.write(root, files)
    runner = Runner.model_validate({"name": "pytest", "results": "junit", "suites": [path]})
    checkout = Checkout(root, root, tuple(files), frozenset(files))
    found, _ = find_runner_suites(checkout, [runner])
    return Fingerprints().of_runner(found[path]).function("test_alone")
