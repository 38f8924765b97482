"""The sandboxed templates of prompts and reports, and the packaged folders."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentevals_action import templating
from agentevals_action.reports.markdown.texts import MARKER, Limits, list_facts
from agentevals_action.reports.view.build import build_view
from tests.support import reviews

ROOT = Path(__file__).resolve().parents[2]
LIMITS = Limits(detailed=9, answer=100, suites=9, items=9, errors=9, text=100)


def render(text: str) -> str:
    context = {**list_facts(build_view(reviews.hostile()), LIMITS), "marker": MARKER}
    return templating.render_custom_report(text, "mine.md.j2", context)


def test_custom__replaces_a_block_and_keeps_the_rest(tmp_path: Path) -> None:
    text = render(
        '{% extends "comment.md.j2" %}{% block verdict %}\nMine: {{ parts.verdict() }}\n{% endblock %}'
        "{% block details %}{% endblock %}",
    )
    assert text.startswith("<!-- agentevals-report -->\nMine: **Failed:**")
    assert "| Suite |" in text
    assert "[!CAUTION]" not in text


@pytest.mark.parametrize(
    "text", ["{{ view.tests[0].comparison.id }}", "{{ view.tests }}", "{{ view.tests[0] ~ '' }}"]
)
def test_custom__what_it_prints_is_escaped(text: str) -> None:
    shown = render(text)
    assert "@&#8203;octocat" in shown
    assert not {"@octocat", "<img", "<!--", "`"} & set(re.findall("@octocat|<img|<!--|`", shown))


@pytest.mark.parametrize(
    "text",
    [
        "{{ nothing }}",
        "{% if %}",
        "{{ 1 / 0 }}",
        "{{ range(10 ** 9) }}",
        "{{ ''.__class__ }}",
        "{{ view.review.__class__.__mro__ }}",
        "{{ run.parse_file('/etc/hostname') }}",
        "{{ run.model_copy() }}",
        "{{ cycler.__init__.__globals__.os.environ }}",
        '{% include "/etc/passwd" %}',
        '{% include "../pyproject.toml" %}',
        "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
        "{{ table.rows[99].sign }}",
        "{{ [1][5] + 1 }}",
        "{{ {}['a'].b }}",
    ],
)
def test_custom__a_template_that_fails_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"the template mine\.md\.j2 cannot be rendered"):
        render(text)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\n{% block %}", 2),
        ('{% extends "comment.md.j2" %}\n{% block suites %}\n{{ nothing.at }}\n{% endblock %}', 3),
    ],
)
def test_custom__an_error_is_one_sentence_with_its_line(text: str, line: int) -> None:
    with pytest.raises(ValueError, match=rf"rendered: [^\n]+ \(line {line}\)$"):
        render(text)


def test_custom__what_it_gets_cannot_be_changed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be rendered"):
        render("{{ view.__setattr__('tests', 'x') }}")


def test_layout__empty_lines_outside_blocks_are_one_and_inside_stay(tmp_path: Path) -> None:
    assert render(
        "\n\na  \n\n\n\nb\n```text\n\n\n\nc  \n```\n\n\n~~~~text\n```\n\n\n\n~~~~\n\n\nend\n\n\n",
    ) == ("a\n\nb\n```text\n\n\n\nc  \n```\n\n~~~~text\n```\n\n\n\n~~~~\n\nend\n")


def test_prompt__unknown_variables_are_named() -> None:
    assert templating.unknown_variables(
        "{{ answer }} {{ anwser }} {{ a }}", frozenset({"answer"})
    ) == ("a", "anwser")
    with pytest.raises(ValueError, match="not a valid template"):
        templating.unknown_variables("{{ answer", frozenset())


def test_prompt__keeps_its_lines_and_does_not_escape() -> None:
    assert (
        templating.render_text(
            "  {{ answer }}\n\n{% if true %}\nx\n{% endif %}\n", {"answer": "<b>{{ 1 }}"}
        )
        == "  <b>{{ 1 }}\n\n\nx\n\n"
    )
    with pytest.raises(ValueError, match="cannot be rendered"):
        templating.render_text("{{ answer.__class__.__mro__ }}", {"answer": ""})


@pytest.mark.parametrize(
    "text",
    [
        "{{ (((((1)))))[0].b }}",
        "{% for a in 5 %}{% endfor %}",
        "{{ '%d' % 'a' }}",
        "{{ {}|first }}",
        "{{ 'x' * 1000000000 }}",
        "{{ 1000000000 * [1] }}",
        "{{ 10 ** 100000000 }}",
        "{{ range(1000000000)|sum }}",
        "{% for a in range(2000) %}{{ 'x' * 30000 }}{% endfor %}",
    ],
)
def test_prompt__a_template_that_fails_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="the prompt cannot be rendered: "):
        templating.render_text(text, {})


@pytest.mark.parametrize(
    "text", ["{{ " + "(" * 5_000, "{% if answer %}" * 5_000, "{{ answer" + "|upper" * 5_000 + " }}"]
)
def test_prompt__nested_too_deeply_is_an_error(text: str) -> None:
    with pytest.raises(
        ValueError, match="the prompt is not a valid template: it is nested too deeply"
    ):
        templating.unknown_variables(text, frozenset({"answer"}))


@pytest.mark.parametrize("name", ["templates", "examples", "schemas"])
def test_packaged_folder__of_a_checkout_is_at_its_top(name: str) -> None:
    assert templating.packaged_folder(name) == ROOT / name
    assert any(templating.packaged_folder(name).iterdir())


def test_packaged_folder__of_an_installed_package_is_inside_it(tmp_path: Path) -> None:
    package = tmp_path / "site" / "agentevals_action"
    (package / "_data" / "templates").mkdir(parents=True)
    for name in ("__init__.py", "escaping.py", "formatting.py", "templating.py"):
        shutil.copy(ROOT / "src" / "agentevals_action" / name, package / name)
    # What lies above an installed package belongs to others.
    (tmp_path / "templates").mkdir()
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "from agentevals_action.templating import packaged_folder; "
        "print(packaged_folder('templates'))"
    )
    child = subprocess.run(
        [sys.executable, "-I", "-c", code, str(package.parent)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout.strip() == str(package / "_data" / "templates")
