"""The sandboxed Jinja environments of reports, judge prompts and HTTP bodies, and the packaged
folders. The sandbox keeps a template from the program's objects. It bounds what a template makes,
not its time."""

import json
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import (
    BaseLoader,
    FunctionLoader,
    StrictUndefined,
    Template,
    TemplateError,
    TemplateSyntaxError,
    Undefined,
    meta,
    nodes,
    pass_eval_context,
)
from jinja2.environment import TemplateExpression, TemplateModule
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup
from pydantic import BaseModel

from agentevals_action import escaping, formatting

_PACKAGE = Path(__file__).resolve().parent
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
#: Characters of a rendered text, and of a repetition, at most: more than a file of 20 MB in base64.
#: `range` has Jinja's own bound.
_MAX_LENGTH = 50_000_000
#: Columns of a block that fit into a comment; GitHub does not wrap the lines of a block.
_WIDTH = 95
_FENCE = re.compile("`{3,}|~{3,}")


def packaged_folder(name: str) -> Path:
    """The folder `templates`, `examples` or `schemas`: in an installed package, or at the top of a
    checkout."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parents[1] / name


def _read_templates() -> Mapping[str, str]:
    folder = packaged_folder("templates")
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for pattern in ("*.j2", "*.css", "*.js")
        for path in folder.rglob(pattern)
    }


class _Sandbox(ImmutableSandboxedEnvironment):
    """Accident: `{{ "x" * 1000000000 }}`, or a power of that size, takes all memory or time."""

    intercepted_binops = frozenset({"*", "**"})

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Pydantic's methods are not safe: `parse_file` reads any file."""
        is_safe = super().is_safe_attribute(obj, attr, value)
        return is_safe and not (isinstance(obj, BaseModel) and hasattr(BaseModel, attr))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Multiplies and raises to a power, within bounds."""
        sizes = [len(side) for side in (left, right) if isinstance(side, str | list | tuple)]
        times = [abs(side) for side in (left, right) if isinstance(side, int)]
        if operator == "*" and sizes and times and sizes[0] * times[0] > _MAX_LENGTH:
            raise OverflowError(f"a repetition is longer than {_MAX_LENGTH:,}")
        if operator == "**" and len(times) == 2 and times[0].bit_length() * times[1] > _MAX_LENGTH:
            raise OverflowError("a power is too large")
        return super().call_binop(context, operator, left, right)


def _environment(
    loader: BaseLoader | None = None, trims: bool = False, escapes: bool = False
) -> _Sandbox:
    # Autoescape is for HTML, and `finalize` escapes Markdown; prompts have the texts as they are.
    return _Sandbox(
        loader=loader,
        undefined=StrictUndefined,
        optimized=False,  # it takes a seventh of the time of compiling, and little is rendered
        trim_blocks=trims,
        lstrip_blocks=trims,
        keep_trailing_newline=True,
        autoescape=escapes,
    )


# `finalize` needs the context, which only rendering has: else compiling would print constants.
@pass_eval_context
def _as_text(_context: nodes.EvalContext, value: Any) -> Any:
    """The form of `{{ value }}` in a prompt: data as JSON, nothing for null."""
    if value is None:
        return ""
    is_data = isinstance(value, dict | list | tuple | bool)
    return json.dumps(value, ensure_ascii=False) if is_data else value


def _as_markdown(value: Any) -> Any:
    """The form of `{{ value }}` in a report: one line of escaped text, unless a filter or a macro
    made Markdown of it."""
    if isinstance(value, Markup | Undefined | int | float) or value == "":
        return value
    return Markup(escaping.inline(str(value)))  # noqa: S704 - escaped


def _markdown(escape: Callable[..., str]) -> Callable[..., Markup]:
    return lambda *values, **options: Markup(escape(*values, **options))  # noqa: S704 - escaped


def _link(text: str, url: str | None) -> str:
    """A text as a link if there is a URL."""
    shown: str = _as_markdown(text)
    return f"[{shown}]({url})" if url else shown


def _names(names: Sequence[str], limit: int) -> str:
    """The first names in a sentence."""
    shown = formatting.shortened([escaping.code(name) for name in names], limit)
    return formatting.joined(shown)


def _list_items(lines: str, limit: int | None = None) -> Sequence[Markup]:
    """The first lines of Markdown that are not empty, and one that counts the others."""
    written = [line for line in lines.splitlines() if line.strip()]
    shown = written if limit is None else formatting.shortened(written, limit)
    return [Markup(line) for line in shown]  # noqa: S704 - lines of Markdown


# Read when the module is imported: a program of a pull request that runs later cannot change them.
_TEXTS = _read_templates()
# A packaged template has a file name, by which its frames differ from those of a user's template.
_PACKAGED = FunctionLoader(lambda name: (_TEXTS[name], name, None) if name in _TEXTS else None)
_REPORTS = _environment(_PACKAGED, trims=True, escapes=True)
_REPORTS.finalize = _as_markdown
_PAGES = _environment(_PACKAGED, trims=True, escapes=True)
_FILES = _environment(_PACKAGED, trims=True)
for _reports in (_REPORTS, _PAGES):
    _reports.filters |= {
        "code": _markdown(escaping.code),
        "prose": _markdown(escaping.prose),
        "inline": _markdown(escaping.inline),
        "fenced": _markdown(partial(escaping.fenced, width=_WIDTH)),
        "link": _markdown(_link),
        "names": _markdown(_names),
        "items": _list_items,
        "join_lines": _markdown(lambda lines, separator: separator.join(_list_items(lines))),
        "capitalized": lambda text: text[:1].upper() + text[1:],
        "counted": _markdown(formatting.counted),
        "error_kind": formatting.error_kind,
        "first_line": formatting.first_line,
        "score": _markdown(formatting.score),
        "percent": _markdown(formatting.percent),
        "time": _markdown(formatting.time),
    }
_PROMPTS = _environment(_PACKAGED)
_PROMPTS.finalize = _as_text
# One segment of a path or one value of a query: Jinja's own leaves `/` as it is.
_PROMPTS.filters["urlencode"] = lambda value: quote(
    "" if value is None else str(value), safe="", errors="replace"
)


def unknown_variables(
    text: str, known: frozenset[str], what: str = "the prompt"
) -> tuple[str, ...]:
    """Names that a template uses and that are not `known`, in alphabetical order; ValueError, which
    calls it `what`, for an invalid template."""
    try:
        return tuple(sorted(meta.find_undeclared_variables(_PROMPTS.parse(text)) - known))
    except (TemplateError, RecursionError) as error:
        raise ValueError(f"{what} is not a valid template: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """The error of a user's template on one line, with its line there if it is known."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    reason = error.message if isinstance(error, TemplateSyntaxError) else None
    reason = "it needs too much memory" if isinstance(error, MemoryError) else reason or str(error)
    reason = " ".join(reason.split()) or type(error).__name__
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == "<template>"
    ]
    line = error.lineno if isinstance(error, TemplateSyntaxError) else (lines or [None])[-1]
    return f"{reason} (line {line})" if line else reason


@lru_cache(maxsize=256)
def _template(text: str) -> Template:
    return _PROMPTS.from_string(text)


def render_text(text: str, variables: Mapping[str, Any], what: str = "the prompt") -> str:
    """A template of a user with its variables; data is printed as JSON. ValueError, which calls it
    `what`, when it cannot be rendered."""
    try:
        return _rendered(_template(text), variables)
    except _TEMPLATE_ERRORS as error:
        raise ValueError(f"{what} cannot be rendered: {_reason(error)}") from None


def _rendered(template: Template, variables: Mapping[str, Any]) -> str:
    """The text of a template of a user. OverflowError beyond the bound."""
    parts, length = [], 0
    for part in template.generate(variables):
        parts.append(part)
        length += len(part)
        if length > _MAX_LENGTH:
            raise OverflowError(f"the text is longer than {_MAX_LENGTH:,} characters")
    return "".join(parts)


def builtin_prompt(name: str, variables: Mapping[str, Any]) -> str:
    """A packaged prompt of `templates/judges` (`llm_judge.md.j2`) with its variables."""
    return _PROMPTS.get_template(f"judges/{name}").render(variables)


@lru_cache(maxsize=256)
def _expression(text: str) -> TemplateExpression | None:
    """The expression of a template that consists of one (`{{ input }}`), else None."""
    is_one = text.startswith("{{") and text.endswith("}}")
    body = _PROMPTS.parse(text).body if is_one else []
    printed = body[0].nodes if len(body) == 1 and isinstance(body[0], nodes.Output) else []
    if len(printed) != 1 or isinstance(printed[0], nodes.TemplateData):
        return None
    return _PROMPTS.compile_expression(text.strip()[2:-2].strip("-+"), undefined_to_none=False)


def render_value(text: str, variables: Mapping[str, Any], what: str) -> Any:
    """One string of a JSON body with its variables; a template that consists of one expression
    becomes the value of the expression (a list, a number)."""
    try:
        expression = _expression(text)
        if expression is None:
            return _rendered(_template(text), variables)
        value = expression(variables)
        if isinstance(value, Undefined):
            value._fail_with_undefined_error()
        return value
    except _TEMPLATE_ERRORS as error:
        raise ValueError(f"{what} cannot be rendered: {_reason(error)}") from None


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
    """A text with `{{ name }}` and `{{ name.field }}` filled in; a text that is only one such name
    becomes its value. ValueError for an unknown name, and for any other expression."""
    try:
        tree = _PROMPTS.parse(text)
    except (TemplateError, RecursionError) as error:
        raise ValueError(f"the text cannot be filled in: {_reason(error)}") from None
    if any(not isinstance(node, _NAMES_ONLY) for node in (tree, *tree.find_all(nodes.Node))):
        raise ValueError("the text has more than names in `{{ }}`; write only `{{ name }}`")
    return render_value(text, variables, "the text")


def render_report(name: str, context: Mapping[str, Any]) -> str:
    """A packaged template of Markdown, whose texts are escaped."""
    return _tidy(_REPORTS.get_template(name).render(context))


def render_file(name: str, context: Mapping[str, Any]) -> str:
    """A packaged template of another file, whose texts stay as they are."""
    return _tidy(_FILES.get_template(name).render(context))


def report_macros(name: str, context: Mapping[str, Any]) -> TemplateModule:
    """The macros of a packaged template, which return Markdown."""
    return _REPORTS.get_template(name).make_module(dict(context))


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
        return _tidy(_rendered(_REPORTS.from_string(text), context))
    except _TEMPLATE_ERRORS as error:
        raise ValueError(f"the template {name} cannot be rendered: {_reason(error)}") from None


def _tidy(text: str) -> str:
    """Consecutive empty lines outside of fenced blocks become one, so that the layout of a template
    is free."""
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
