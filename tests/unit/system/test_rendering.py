"""Templates of users: rendered here if they only name variables, else in a child process."""

import asyncio
import os
from typing import Any

import pytest

from agentevals_action import templating
from agentevals_action.system import rendering


def render(text: str, **variables: Any) -> Any:
    return asyncio.run(rendering.render(templating.render_prompt, text, variables))


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "{{ a }} and {{ a.b[0]['c'] }}",
        "{{ a | tojson }} {{ a | length }}",
        "{# a comment #}",
        "{{ a",
    ],
)
def test_only_names_variables__its_cost_is_that_of_its_result(text: str) -> None:
    assert templating.only_names_variables(text)


@pytest.mark.parametrize(
    "text",
    [
        "{% for x in a %}{{ x }}{% endfor %}",
        "{% if a %}b{% endif %}",
        "{{ a.b() }}",
        "{{ a ~ a }}",
        "{{ a * 9 }}",
        "{{ a | replace('', a) }}",
        "{{ a | tojson(indent=9) }}",
        "{{ a[b] }}",
        "{% set b = a %}",
        "{{ lipsum() | length }}",
        "{{ a if a else b }}",
        "{% macro m() %}{% endmacro %}",
    ],
)
def test_only_names_variables__anything_else_may_take_long(text: str) -> None:
    assert not templating.only_names_variables(text)


def test_render__both_ways_make_the_same_text() -> None:
    rubrics = [{"id": "one", "outcome": "é\u2028\ud800"}]
    assert render("{{ rubrics[0].outcome }}", rubrics=rubrics) == "é\u2028\ud800"
    loop = "{% for one in rubrics %}{{ one.outcome }}{% endfor %}"
    assert render(loop, rubrics=rubrics) == "é\u2028\ud800"


def test_render__a_value_keeps_its_type() -> None:
    function = templating.render_value
    for text in ("{{ a }}", "{{ a if a else 1 }}"):
        rendered = rendering.render(function, text, {"a": [1, {"b": None}]}, "`body`")
        assert asyncio.run(rendered) == [1, {"b": None}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "took longer than",
        ),
        ("{{ '%9000000000d' | format(1) }}", "too much memory"),
        ("{{ '%100000000000d' | format(1) }}", "cannot be rendered"),
        ("{% for a in range(99999) %}{{ answer }}{% endfor %}", "more than 20,000,000 characters"),
        ("{{ answer }}" * 5_000, "more than 20,000,000 characters"),
        ("{{ nothing if true }}", "'nothing' is undefined"),
    ],
)
def test_render__a_template_that_exceeds_a_limit_is_an_error(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        render(text, answer="x" * 5_000)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to change users")
def test_render__the_process_has_no_rights() -> None:
    """Attack: a template that leaves the sandbox runs as root, which reads keys."""
    made = rendering.render_apart(templating.render_prompt, "{{ a() }}", {"a": os.getuid})
    assert asyncio.run(made) == "65534"
