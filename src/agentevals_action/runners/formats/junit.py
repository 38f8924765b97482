"""JUnit XML, as pytest writes it with `junit_family=xunit1`. The XML of other programs (vitest,
jest-junit, go-junit-report) is read as well, with a `command` in the entry.

`record_property` fills the question, the answer and the score that a reader sees. They are no part
of a fingerprint: a test that fails before it writes its question, or a question that is made of the
prompt under test, would look like an edited test."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from typing import ClassVar
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from pydantic import NonNegativeInt

from agentevals_action.formatting import cut_line
from agentevals_action.model.result import Record
from agentevals_action.model.suite import Suite
from agentevals_action.runners.formats.base import (
    Format,
    ResultsError,
    Row,
    Selection,
    place_in,
    read_file,
)
from agentevals_action.validation.file_model import NonEmpty
from agentevals_action.validation.json_values import amount_in

_FILE = "junit.xml"
# With `-x` in the configuration, the tests after the first failure would look deleted.
_OPTIONS = (
    *("-o", "junit_family=xunit1", "-p", "no:cacheprovider", "--maxfail=0"),
    *("--junit-xml", f"{{RESULTS}}/{_FILE}"),
)
_OUTCOMES, _OTHERS = ("failure", "error", "skipped"), ("properties", "system-out", "system-err")
_NOT_RUN = ("disabled", "notrun")  # the status that CTest and GoogleTest give to a test
_MAX_TAGS = 1_000_000  # 32 MiB of elements would take gigabytes
_SHOWN = 200  # characters
_NO_TESTS = "its tests could not be collected"
#: pytest marks the lines of an exception in a traceback.
_EXCEPTION = re.compile(r"^E( .*)$", re.MULTILINE)
#: The first of the ids that pytest gives to parameters which are objects: `[input0-expected0]`.
_NUMBERED = re.compile(r"[\[-]([A-Za-z_]\w*(?<!\d)0)(?=[\]-])")
_NOTICE = (
    "the parameters of `{}` are numbered (`{}`): one more of them changes what the others are; "
    "give them `ids=`"
)


class Attributes(Record):
    """The attributes of a `testcase`. `file` is relative to the folder of pytest's configuration,
    `line` counts from 0."""

    name: NonEmpty
    classname: str = ""
    file: str = ""
    line: NonNegativeInt | None = None

    def id_in(self, path: str) -> str:
        """Its node id without the path of the suite. Its class begins with that path, relative to
        the folder of pytest's configuration, after a prefix that a team can choose."""
        names, parts = f".{self.classname.replace('/', '.')}.", path.removesuffix(".py").split("/")
        classes = [self.classname.strip(".")]
        for index in reversed(range(len(parts))):
            _, module, rest = names.partition(f".{'.'.join(parts[index:])}.")
            if module:
                classes = rest.strip(".").split(".")
        return "::".join(filter(None, [*classes, self.name]))


class JunitResults(Format):
    """pytest, and others that write JUnit XML."""

    name = "junit"
    version = "the JUnit XML of pytest 9.2"
    program = "python3 -m pytest"
    command = ("{SUITE}", *_OPTIONS)
    again = ("@{SELECTION}", *_OPTIONS)
    variables: ClassVar[Mapping[str, str]] = {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES"}
    configuration = ("conftest.py", "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
    has_functions = True
    exit_codes = frozenset({0, 1, 6})  # 6: too many warnings
    failed_codes = frozenset({1})

    def read(self, folder: Path, suite: Suite) -> Sequence[Row]:
        """One row for each test: several elements of one test are a failure and then an error of
        its teardown, or attempts of pytest-rerunfailures, of which all but the last look passed."""
        tests: dict[str, tuple[Attributes, list[Element]]] = {}
        for element in _parse(read_file(folder, _FILE)).iter("testcase"):
            case = Attributes.model_validate_strings(element.attrib)
            tests.setdefault(case.id_in(suite.path), (case, []))[1].append(element)
        return [_row(name, case, elements, suite) for name, (case, elements) in tests.items()]

    def select(self, rows: Sequence[Row], suite: Suite) -> Sequence[Selection]:
        """The node ids from the root of the checkout, one a line."""
        return [Selection(text="".join(f"{suite.path}::{row.id}\n" for row in rows))]


def _parse(content: bytes) -> Element:
    # Entities of a document type could grow without end; UTF-16 has a zero byte in each letter.
    if b"<!DOCTYPE" in content.replace(b"\0", b"").partition(b"<testsuite")[0]:
        raise ResultsError(f"its {_FILE} has a document type (DOCTYPE), which is not read")
    if content.count(b"<") > _MAX_TAGS:
        raise ResultsError(f"its {_FILE} has more than {_MAX_TAGS:,} tags")
    try:
        return ElementTree.fromstring(content)  # noqa: S314  # see above
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise ResultsError(f"its {_FILE} is not complete XML ({error})") from None


def _row(name: str, case: Attributes, elements: Sequence[Element], suite: Suite) -> Row:
    texts: dict[str, list[str]] = {tag: [] for tag in _OUTCOMES}
    statuses = (element.get("status", "") for element in elements)
    texts["skipped"] += [status for status in statuses if status in _NOT_RUN]
    properties: dict[str, str] = {}
    for child in (child for element in elements for child in element):
        if child.tag in texts:
            texts[child.tag].append(_message(child))
        elif child.tag not in _OTHERS:
            unknown = f"a test has a <{cut_line(child.tag, _SHOWN)}>"
            raise ResultsError(f"{unknown}, which {JunitResults.version} does not have")
        for entry in child.iter("property"):
            properties[entry.get("name", "")] = entry.get("value", "")
    failure, error, skipped = ("\n".join(lines) for lines in texts.values())
    if name == suite.path:  # vitest
        raise ResultsError(f"{_NO_TESTS}: {cut_line(failure, _SHOWN)}")
    seconds = [amount_in(element.get("time", "")) or 0 for element in elements]
    numbered = _NUMBERED.search(name)
    return Row(
        id=name,
        passed=not (failure or error or skipped),
        error="" if failure else error,
        skipped="" if failure or error else skipped,
        question=properties.get("question", ""),
        answer=properties.get("answer", ""),
        score=amount_in(properties.get("score", "")),
        reason="\n".join(filter(None, [failure, error])) if failure else "",
        duration_ms=sum(seconds) * 1000 or None,
        # The function may be imported from another file.
        location=None if case.line is None else place_in(suite, case.file, case.line + 1),
        notice=_NOTICE.format(name.partition("[")[0], numbered[1]) if numbered else "",
    )


def _message(outcome: Element) -> str:
    """What an outcome says, never empty. pytest cuts its message at 500 characters."""
    message, text = outcome.get("message", ""), (outcome.text or "").strip()
    if message == "collection failure":
        problem = cut_line(text.rpartition("\n")[2].removeprefix("E"), _SHOWN)
        raise ResultsError(f"{_NO_TESTS}: {problem}")
    if message.endswith("full report in element text]"):
        message = dedent("\n".join(_EXCEPTION.findall(text))) or message
    return message.removeprefix("AssertionError: ") or text or outcome.get("type") or outcome.tag
