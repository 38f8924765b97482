"""The sandboxed Jinja environments of reports, judge prompts and HTTP bodies, and the packaged
folders.

No sandbox limits the time or the memory of a template. Templates of users that can take long are
rendered by `system.rendering`."""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    DictLoader,
    StrictUndefined,
    Template,
    TemplateError,
    Undefined,
    meta,
    nodes,
    pass_eval_context,
)
from jinja2.environment import TemplateExpression
from jinja2.exceptions import SecurityError
from jinja2.filters import do_tojson, do_urlencode
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

_PACKAGE = Path(__file__).resolve().parent
_CUSTOM = "the custom template"
#: The errors that a template of a user can end in.
_TEMPLATE_ERRORS = (
    TemplateError,
    OSError,
    SyntaxError,
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    RecursionError,
    MemoryError,
)
#: Characters of a text that a template of a user makes: 200 KB of `{{ output }}` would make 200 GB.
MAX_RENDERED = 20_000_000
#: Filters whose cost is that of their result.
_LINEAR_FILTERS = frozenset({"tojson", "urlencode", "length", "count"})
_FENCE = re.compile("`{3,}|~{3,}")
#: The longest text or list that `*`, and the most bits of a number that `**`, may make.
_LONGEST, _MOST_BITS = 1_000_000, 10_000


def packaged_folder(name: str) -> Path:
    """The folder `templates`, `examples` or `schemas`: in an installed package, or at the top of a
    checkout."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parents[1] / name


def _read_templates() -> DictLoader:
    folder = packaged_folder("templates")
    return DictLoader(
        {
            path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
            for path in folder.rglob("*.j2")
        }
    )


class _Environment(ImmutableSandboxedEnvironment):
    """A sandbox in which an operator cannot fill the memory."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """`left * right` or `left ** right`; SecurityError when the result would be very large."""
        if (
            operator == "**"
            and isinstance(left, int)
            and isinstance(right, int)
            and left.bit_length() * right > _MOST_BITS
        ):
            raise SecurityError(f"{operator} makes a number of more than {_MOST_BITS:,} bits here")
        for one, times in ((left, right), (right, left)):
            if (
                operator == "*"
                and isinstance(times, int)
                and isinstance(one, str | list | tuple)
                and len(one) * times > _LONGEST
            ):
                raise SecurityError(
                    f"{operator} makes a text or a list longer than {_LONGEST:,} here"
                )
        return super().call_binop(context, operator, left, right)


def _environment(
    loader: BaseLoader | None = None, trims: bool = False, escapes: bool = False
) -> _Environment:
    # Autoescape is for HTML only: other texts are Markdown and prompts, and the report view escapes
    # untrusted text.
    # Not optimized: a prompt is compiled when its suite is read, and constants may be large.
    return _Environment(
        loader=loader,
        undefined=StrictUndefined,
        trim_blocks=trims,
        lstrip_blocks=trims,
        keep_trailing_newline=True,
        autoescape=escapes,
        optimized=False,
    )


# `finalize` needs the context, which only rendering has: else compiling would print constants.
@pass_eval_context
def _as_text(_context: nodes.EvalContext, value: Any) -> Any:
    """The form of `{{ value }}` in a prompt: data as JSON, nothing for null."""
    if value is None:
        return ""
    is_data = isinstance(value, dict | list | tuple | bool)
    return json.dumps(value, ensure_ascii=False) if is_data else value


class _Ready(str):
    """A text that a filter already encoded: `tojson` in a JSON text, `urlencode` in a URL."""

    __slots__ = ()


@pass_eval_context
def _json_ready(context: nodes.EvalContext, value: Any, indent: int | None = None) -> _Ready:
    return _Ready(do_tojson(context, value, indent))


@pass_eval_context
def _in_json(context: nodes.EvalContext, value: Any) -> str:
    """The form of `{{ value }}` in a JSON text: the inside of a string, so that no text can end it;
    data as JSON."""
    text = str(_as_text(context, value))
    is_data = isinstance(value, _Ready) or not isinstance(value, str)
    return text if is_data else json.dumps(text, ensure_ascii=False)[1:-1]


@pass_eval_context
def _in_url(context: nodes.EvalContext, value: Any) -> str:
    """The form of `{{ value }}` in a URL: one segment of a path, or one value of a query."""
    text = str(_as_text(context, value))
    return text if isinstance(value, _Ready) else quote(text, safe="", errors="replace")


# Read when the module is imported: a program of a pull request that runs later cannot change them.
_PACKAGED = _read_templates()
_TEXTS = {
    path.relative_to(packaged_folder("templates")).as_posix(): path.read_text(encoding="utf-8")
    for pattern in ("*.css", "*.js")
    for path in packaged_folder("templates").rglob(pattern)
}
_REPORTS = _environment(_PACKAGED, trims=True)
_PAGES = _environment(_PACKAGED, trims=True, escapes=True)
_PROMPTS = _environment(_PACKAGED)
_PROMPTS.finalize = _as_text
_BODIES = {"text": _environment(), "json": _environment(), "url": _environment()}
_BODIES["text"].finalize = _as_text
_BODIES["json"].finalize = _in_json
_BODIES["json"].filters["tojson"] = _json_ready
_BODIES["url"].finalize = _in_url
_BODIES["url"].filters["urlencode"] = lambda value: _Ready(do_urlencode(value))


def unknown_variables(
    text: str, known: frozenset[str], what: str = "the prompt"
) -> tuple[str, ...]:
    """Names that a template uses and that are not `known`, in alphabetical order; ValueError, which
    calls it `what`, for an invalid template."""
    try:
        tree = _PROMPTS.parse(text)
        # The only block whose operand is computed during compilation; no prompt needs it.
        if tree.find(nodes.ScopedEvalContextModifier):
            raise ValueError(f"{what} contains `autoescape`; remove it, nothing is escaped there")
        reader = meta.TrackingCodeGenerator(_PROMPTS)
        reader.optimizer = None
        reader.visit(tree)
    except TemplateError as error:
        raise ValueError(f"{what} is not a valid template: {error}") from None
    except RecursionError:
        raise ValueError(f"{what} is not a valid template: it is nested too deeply") from None
    return tuple(sorted(reader.undeclared_identifiers - known))


def _reason(error: Exception) -> str:
    return "it needs too much memory" if isinstance(error, MemoryError) else str(error)


@lru_cache(maxsize=256)
def only_names_variables(text: str) -> bool:
    """Whether a template consists of text and variables (`{{ metadata.tags[0] | tojson }}`): its
    cost is that of its result. Others (loops, conditions, calls) can take any time. A template
    that is not valid counts as one, its error is found at once."""
    try:
        body = _PROMPTS.parse(text).body
    except (TemplateError, RecursionError):
        return True
    return all(
        isinstance(node, nodes.Output) and all(map(_is_variable, node.nodes)) for node in body
    )


def _is_variable(node: nodes.Expr | None) -> bool:
    if isinstance(node, nodes.Filter) and node.name in _LINEAR_FILTERS:
        if node.args or node.kwargs or node.dyn_args or node.dyn_kwargs:
            return False
        node = node.node
    while isinstance(node, nodes.Getattr | nodes.Getitem):
        if isinstance(node, nodes.Getitem) and not isinstance(node.arg, nodes.Const):
            return False
        node = node.node
    return isinstance(node, nodes.Name | nodes.TemplateData | nodes.Const)


def _joined(template: Template, variables: Mapping[str, Any]) -> str:
    parts, length = [], 0
    for part in template.generate(variables):
        parts.append(part)
        length += len(part)
        if length > MAX_RENDERED:
            raise ValueError(f"it makes more than {MAX_RENDERED:,} characters")
    return "".join(parts)


@lru_cache(maxsize=64)
def _prompt(text: str) -> Template:
    return _PROMPTS.from_string(text)


def render_prompt(text: str, variables: Mapping[str, Any]) -> str:
    """A judge's prompt with its variables; ValueError when it cannot be rendered."""
    try:
        return _joined(_prompt(text), variables)
    except _TEMPLATE_ERRORS as error:
        raise ValueError(f"the prompt cannot be rendered: {_reason(error)}") from None


def builtin_prompt(name: str, variables: Mapping[str, Any]) -> str:
    """A packaged prompt of `templates/judges` (`llm_judge.md.j2`) with its variables."""
    return _PROMPTS.get_template(f"judges/{name}").render(variables)


@lru_cache(maxsize=256)
def _compiled(text: str, kind: str) -> Template:
    return _BODIES[kind].from_string(text)


@lru_cache(maxsize=256)
def _expression(text: str) -> TemplateExpression | None:
    """The expression of a template that consists of one (`{{ input }}`), else None."""
    environment = _BODIES["text"]
    body = environment.parse(text).body if text.startswith("{{") and text.endswith("}}") else []
    printed = body[0].nodes if len(body) == 1 and isinstance(body[0], nodes.Output) else []
    if len(printed) != 1 or isinstance(printed[0], nodes.TemplateData):
        return None
    return environment.compile_expression(text.strip()[2:-2].strip("-+"), undefined_to_none=False)


def render_text(
    text: str,
    variables: Mapping[str, Any],
    what: str,
    kind: Literal["text", "json", "url"] = "text",
) -> str:
    """A template with its variables. Values are escaped for a string in a `json` text and
    percent-encoded in a `url`. ValueError, which calls it `what`, when it cannot be rendered."""
    try:
        return _joined(_compiled(text, kind), variables)
    except _TEMPLATE_ERRORS as error:
        raise ValueError(f"{what} cannot be filled in: {_reason(error)}") from None


def render_value(text: str, variables: Mapping[str, Any], what: str) -> Any:
    """One string of a JSON body with its variables; a template that consists of one expression
    becomes the value of the expression (a list, a number)."""
    try:
        expression = _expression(text)
        if expression is None:
            return _joined(_compiled(text, "text"), variables)
        value = expression(variables)
        if isinstance(value, Undefined):
            value._fail_with_undefined_error()
        return value
    except _TEMPLATE_ERRORS as error:
        raise ValueError(f"{what} cannot be filled in: {_reason(error)}") from None


#: The parts of a template that only fills in names: it cannot loop.
_NAMES_ONLY = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.Name,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Const,
)


def fill_names(text: str, variables: Mapping[str, Any]) -> Any:
    """A text with `{{ name }}` and `{{ name.field }}` filled in; a text that is only one of them
    becomes its value. ValueError for an unknown name, and for any other expression."""
    try:
        tree = _BODIES["text"].parse(text)
    except TemplateError as error:
        raise ValueError(f"the text cannot be filled in: {error}") from None
    except RecursionError:
        raise ValueError("the text cannot be filled in: it is nested too deeply") from None
    if any(not isinstance(node, _NAMES_ONLY) for node in (tree, *tree.find_all(nodes.Node))):
        raise ValueError("the text has more than names in `{{ }}`; write only `{{ name }}`")
    return render_value(text, variables, "the text")


def render_report(name: str, context: Mapping[str, Any]) -> str:
    """A packaged report template.

    Consecutive empty lines outside of fenced blocks become one, so that the layout of a template is
    free."""
    return _tidy(_REPORTS.get_template(name).render(context))


def render_page(name: str, context: Mapping[str, Any]) -> str:
    """A packaged template of an HTML page; every text in the context is escaped unless it is
    `Markup`."""
    return _PAGES.get_template(name).render(context)


def packaged_text(name: str) -> str:
    """A file of the folder `templates`, as it was when the program started."""
    return _TEXTS[name]


def render_custom_report(text: str, name: str, context: Mapping[str, Any]) -> str:
    """A template of a user, called `name` in errors, which extends a packaged one
    (`{% extends "comment.md.j2" %}`); ValueError when that fails."""
    try:
        own = DictLoader({_CUSTOM: text})
        environment = _environment(ChoiceLoader([own, _PACKAGED]), trims=True)
        return _tidy(_joined(environment.get_template(_CUSTOM), context))
    except _TEMPLATE_ERRORS as error:
        problem = f"{type(error).__name__}: {_reason(error)}"
        raise ValueError(f"the template {name} cannot be rendered: {problem}") from None


def _tidy(text: str) -> str:
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        if not fence and not line.strip() and (not lines or not lines[-1]):
            continue
        lines.append(line if fence else line.rstrip())
        if fence:
            fence = "" if line == fence else fence
        elif opening := _FENCE.match(line):
            fence = opening[0]
    return "\n".join(lines).rstrip("\n") + "\n"
