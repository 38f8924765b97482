"""Inputs that were made to hurt a reader: small files that grow, and large ones of every shape."""

import json
from collections.abc import Callable, Mapping

Files = Mapping[str, str | bytes]
Corpus = Mapping[str, Callable[[], Files]]

_TEST = "{id: a, input: q, criteria: c}"
_MEGABYTE = 1_000_000


def _suite(tests: str) -> Files:
    return {"EVAL.yaml": f"name: suite\ntests:\n{tests}\n"}


def _with_evaluator(evaluator: str) -> Files:
    return _suite(f"  - {{id: a, input: q, assert: [{evaluator}]}}")


def _prompt(text: str) -> Files:
    judge = json.dumps({"type": "llm_judge", "prompt": "./prompt.md"})
    return {**_with_evaluator(judge), "prompt.md": text}


def _rows(text: str | bytes) -> Files:
    return {"EVAL.yaml": "name: suite\ntests: rows.jsonl\n", "rows.jsonl": text}


def _row(**fields: object) -> str:
    return json.dumps({"id": "a", "input": "q", "criteria": "c", **fields})


def _laughs() -> Files:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 10)
    ]
    return _suite(f"  - {_TEST}\nmetadata:\n  " + "\n  ".join(lines))


def _chain() -> Files:
    """Each anchor holds the one before twice: 2^40 texts."""
    lines = [
        "a0: &a0 [lol, lol]",
        *(f"a{level}: &a{level} [*a{level - 1}, *a{level - 1}]" for level in range(1, 40)),
    ]
    return _suite(f"  - {_TEST}\nmetadata:\n  " + "\n  ".join(lines))


#: What YAML itself can do.
YAML: Corpus = {
    "billion laughs": _laughs,
    "aliases of aliases": _chain,
    "an alias in itself": lambda: _suite(f"  - {_TEST}\nmetadata: &a {{a: *a}}"),
    "lists in lists": lambda: _suite("  - " + "[" * _MEGABYTE),
    "a long text": lambda: _suite(f"  - {{id: a, input: {'x' * 3 * _MEGABYTE}, criteria: c}}"),
    "a long key": lambda: _suite(
        f"  - {{id: a, input: q, {'x' * 900}: 1, ? {'y' * _MEGABYTE} : 1}}"
    ),
    "a file that is too long": lambda: _suite(f"  - {_TEST}\n#{'#' * 11 * _MEGABYTE}"),
    "a key again and again": lambda: _suite("  - {" + "a: 1, " * 20_000 + "}"),
    "many unknown fields": lambda: _suite(
        "  - {id: a, input: q, criteria: c, "
        + ", ".join(f"inptu{n}: 1" for n in range(10_000))
        + "}"
    ),
    "many empty objects": lambda: _suite(
        f"  - {{id: a, input: q, criteria: c, metadata: {{a: [{'{},' * _MEGABYTE}]}}}}"
    ),
    "a number of many digits": lambda: _suite(
        f"  - {{id: a, input: q, criteria: c, metadata: {{a: {'9' * _MEGABYTE}}}}}"
    ),
    "not UTF-8": lambda: {"EVAL.yaml": b"name: suite\ntests:\n" + b"\xff" * _MEGABYTE},
    "NUL bytes": lambda: {"EVAL.yaml": b"\0" * _MEGABYTE},
    "anchors": lambda: _suite(
        f"  - {_TEST}\nmetadata: [" + ", ".join(f"&a{n} x" for n in range(20_000)) + "]"
    ),
    "quotes that do not close": lambda: _suite('  - "' + "x\n" * 500_000),
}
#: Files that suites name.
FILES: Corpus = {
    "a long path": lambda: _suite(f"  - ./{'a/' * 100_000}x.yaml"),
    "a file that names itself": lambda: {
        "EVAL.yaml": "name: suite\ntests: [a.yaml]",
        "a.yaml": "- a.yaml\n- b.yaml",
        "b.yaml": "[a.yaml, a.yaml]",
    },
    "files that name each other": lambda: {
        "EVAL.yaml": "name: suite\ntests: f0.yaml",
        **{f"f{n}.yaml": f"[f{n + 1}.yaml, f{n + 1}.yaml]" for n in range(40)},
        "f40.yaml": f"[{_TEST}]",
    },
    "a mock's pattern": lambda: {
        **_suite(f"  - {_TEST}"),
        ".agentv/targets.yaml": json.dumps(
            [
                {
                    "name": "default",
                    "provider": "mock",
                    "responses": [{"pattern": "(" * 50_000 + ")" * 50_000, "response": "x"}],
                }
            ]
        ),
    },
    "variables of targets": lambda: {
        **_suite(f"  - {_TEST}"),
        ".agentv/targets.yaml": json.dumps(
            [{"name": "default", "provider": "mock", "x": "${{ A" * 100_000, "responses": []}]
        ),
    },
    "targets that extend": lambda: {
        **_suite(f"  - {_TEST}"),
        ".agentv/targets.yaml": json.dumps(
            [
                {"name": "default", "extends": "t0"},
                *({"name": f"t{n}", "extends": f"t{n + 1}"} for n in range(1_000)),
            ]
        ),
    },
    "patterns of the configuration": lambda: {
        **_suite(f"  - {_TEST}"),
        ".agentv/config.yaml": json.dumps(
            {"eval_patterns": ["{" + ",".join("a" * 10 for _ in range(1000)) + "}"] * 100}
        ),
    },
    "an image in base64": lambda: _suite(
        f"  - {{id: a, criteria: c, input: [{{role: user, content: [{{type: image, value: 'data:image/png;base64,{'A' * 3 * _MEGABYTE}'}}]}}]}}"
    ),
}
#: What evaluators are given.
EVALUATORS: Corpus = {
    "many evaluators that are none": lambda: _with_evaluator("1, " * 30_000 + "1"),
    "many wrong strings": lambda: _with_evaluator(
        f"{{type: contains_any, value: [{'1, ' * 30_000}1]}}"
    ),
    "a hexadecimal number of many digits": lambda: _with_evaluator(
        f"{{type: contains, value: x, weight: 0x{'f' * _MEGABYTE}}}"
    ),
    "a large exponent": lambda: _with_evaluator("{type: contains, value: x, weight: 1e999999999}"),
    "a pattern of groups": lambda: _with_evaluator(
        json.dumps({"type": "regex", "value": "(" * 50_000 + ")" * 50_000})
    ),
    "a pattern of nested repeats": lambda: _with_evaluator(
        json.dumps({"type": "regex", "value": "((((a{1,1000}){1,1000}){1,1000}){1,1000}){1,1000}"})
    ),
    "a command of many quotes": lambda: _with_evaluator(
        json.dumps({"type": "code_judge", "script": "'" * 99_999})
    ),
}
#: Prompts of judges, which are compiled when the suite is read.
PROMPTS: Corpus = {
    "a prompt of brackets": lambda: _prompt("{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}"),
    "a prompt of unknown variables": lambda: _prompt(
        "".join(f"{{{{answr{n}}}}}" for n in range(3_000))
    ),
    "a prompt that is too long": lambda: _prompt("x" * 3 * _MEGABYTE),
    "an inline prompt of loops": lambda: _with_evaluator(
        json.dumps({"type": "llm_judge", "prompt": "{% for a in answer %}" * 15})
    ),
}
#: Rows of JSONL.
ROWS: Corpus = {
    "a long row": lambda: _rows(_row(input="x" * 3 * _MEGABYTE)),
    "a row of lists in lists": lambda: _rows("[" * 3 * _MEGABYTE),
    "a row of many keys": lambda: _rows(
        '{"id": "a"' + "".join(f', "inptu{n}": 1' for n in range(10_000)) + "}"
    ),
    "a row that is too long": lambda: _rows(_row(input="x" * 11 * _MEGABYTE)),
    "rows that are none": lambda: _rows("1\n" * 500_000),
    "rows of one id": lambda: _rows('{"id": "a", "input": "q", "criteria": "c"}\n' * 3_000),
    "rows that are not UTF-8": lambda: _rows(b"\xff" * _MEGABYTE + b"\n"),
    "rows of surrogates": lambda: _rows(_row(input="\ud800" * 100_000)),
}

#: By group and name: makes the files of a repository whose suite is `EVAL.yaml`.
CORPUS: Mapping[str, Corpus] = {
    "YAML": YAML,
    "files": FILES,
    "evaluators": EVALUATORS,
    "prompts": PROMPTS,
    "rows": ROWS,
}
