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
    "a text of many aliases": lambda: _suite(
        f"  - {_TEST}\nmetadata:\n  a: &a {'x' * 1000}\n  b: [{', '.join(['*a'] * 100_000)}]"
    ),
    "an alias in itself": lambda: _suite(f"  - {_TEST}\nmetadata: &a {{a: *a}}"),
    "lists in lists": lambda: _suite("  - " + "[" * _MEGABYTE),
    "objects in objects": lambda: _suite("  - " + "{a: " * 200_000),
    "block lists in lists": lambda: _suite("  " + "- " * 200_000),
    "keys in keys": lambda: _suite("  " + "? " * 200_000),
    "brackets that close": lambda: _suite("  - " + "[]" * _MEGABYTE),
    "a long text": lambda: _suite(f"  - {{id: a, input: {'x' * 3 * _MEGABYTE}, criteria: c}}"),
    "a long text with one sign of four bytes": lambda: _suite(
        f"  - {{id: a, input: {'x' * 9 * _MEGABYTE}\U0001f600, criteria: c}}"
    ),
    "a long text in quotes": lambda: _suite(
        '  - {id: a, input: "' + "\\n" * 2 * _MEGABYTE + '", criteria: c}'
    ),
    "a long key": lambda: _suite(
        f"  - {{id: a, input: q, {'x' * 900}: 1, ? {'y' * _MEGABYTE} : 1}}"
    ),
    "a long name": lambda: {"EVAL.yaml": f"name: {'a' * _MEGABYTE}\ntests: [{_TEST}]"},
    "a long id twice": lambda: _suite(
        "".join(f"  - {{id: {'a' * _MEGABYTE}, input: q, criteria: c}}\n" for _ in range(2))
    ),
    "long lines of spaces": lambda: _suite(f"  - {_TEST}\n{' ' * 5 * _MEGABYTE}"),
    "a long comment": lambda: _suite(f"  - {_TEST}\n#{'#' * 3 * _MEGABYTE}"),
    "empty lines": lambda: _suite(f"  - {_TEST}\n{chr(10) * 3 * _MEGABYTE}"),
    "a file that is too long": lambda: _suite(f"  - {_TEST}\n#{'#' * 11 * _MEGABYTE}"),
    "a key again and again": lambda: _suite("  - {" + "a: 1, " * 20_000 + "}"),
    "many unknown fields": lambda: _suite(
        "  - {id: a, input: q, criteria: c, "
        + ", ".join(f"inptu{n}: 1" for n in range(10_000))
        + "}"
    ),
    "many keys": lambda: _suite(
        "  - {id: a, input: q, criteria: c, metadata: {"
        + ", ".join(f"k{n}: 1" for n in range(20_000))
        + "}}"
    ),
    "many numbers": lambda: _suite(
        f"  - {{id: a, input: q, criteria: c, metadata: {{a: [{'1,' * _MEGABYTE}]}}}}"
    ),
    "many empty objects": lambda: _suite(
        f"  - {{id: a, input: q, criteria: c, metadata: {{a: [{'{},' * _MEGABYTE}]}}}}"
    ),
    "many tests that are none": lambda: {"EVAL.yaml": "name: suite\ntests:\n" + "- 1\n" * 30_000},
    "a number of many digits": lambda: _suite(
        f"  - {{id: a, input: q, criteria: c, metadata: {{a: {'9' * _MEGABYTE}}}}}"
    ),
    "not UTF-8": lambda: {"EVAL.yaml": b"name: suite\ntests:\n" + b"\xff" * _MEGABYTE},
    "half of a character at the end": lambda: {
        "EVAL.yaml": b"name: suite\n" + b"a" * _MEGABYTE + b"\xe2\x82"
    },
    "NUL bytes": lambda: {"EVAL.yaml": b"\0" * _MEGABYTE},
    "UTF-16": lambda: {"EVAL.yaml": ("name: suite\n" * 10_000).encode("utf-16")},
    "percent signs": lambda: {"EVAL.yaml": "%" * _MEGABYTE},
    "document marks": lambda: {"EVAL.yaml": "---\n" * 200_000},
    "tags": lambda: _suite("  - " + "!a " * 100_000),
    "a long tag": lambda: _suite(f"  - !{'a' * _MEGABYTE} x"),
    "anchors": lambda: _suite(
        f"  - {_TEST}\nmetadata: [" + ", ".join(f"&a{n} x" for n in range(20_000)) + "]"
    ),
    "a block scalar without end": lambda: _suite("  - |\n" + "    x\n" * 500_000),
    "quotes that do not close": lambda: _suite('  - "' + "x\n" * 500_000),
}
#: Files that suites name.
FILES: Corpus = {
    "a long target": lambda: {
        **_suite(f"  - {{id: a, input: q, criteria: c, execution: {{target: {'t' * _MEGABYTE}}}}}"),
        ".agentv/targets.yaml": "- {name: default, provider: mock, responses: [{pattern: a, response: b}]}",
    },
    "a long path": lambda: _suite(f"  - ./{'a/' * 100_000}x.yaml"),
    "many references": lambda: _suite("".join(f"  - ./gone-{n}.yaml\n" for n in range(10_000))),
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
    "an image that is no base64": lambda: _suite(
        f"  - {{id: a, criteria: c, input: [{{role: user, content: [{{type: image, value: '{'A=' * 4 * _MEGABYTE}'}}]}}]}}"
    ),
}
#: What evaluators are given.
EVALUATORS: Corpus = {
    "a long type": lambda: _with_evaluator(f"{{type: {'contains' * 100_000}}}"),
    "many evaluators that are none": lambda: _with_evaluator("1, " * 30_000 + "1"),
    "many criteria that are none": lambda: _suite(
        f"  - {{id: a, input: q, rubrics: [{'1, ' * 30_000}1]}}"
    ),
    "many wrong strings": lambda: _with_evaluator(
        f"{{type: contains_any, value: [{'1, ' * 30_000}1]}}"
    ),
    "a hexadecimal number of many digits": lambda: _with_evaluator(
        f"{{type: contains, value: x, weight: 0x{'f' * _MEGABYTE}}}"
    ),
    "an octal number of many digits": lambda: _with_evaluator(
        f"{{type: contains, value: 0o{'7' * _MEGABYTE}}}"
    ),
    "a number that is too large": lambda: _with_evaluator(
        f"{{type: contains, value: x, weight: {'9' * 3_999}}}"
    ),
    "a float of many digits": lambda: _with_evaluator(
        f"{{type: contains, value: x, weight: 1.{'1' * _MEGABYTE}}}"
    ),
    "a large exponent": lambda: _with_evaluator("{type: contains, value: x, weight: 1e999999999}"),
    "a long pattern": lambda: _with_evaluator(
        json.dumps({"type": "regex", "value": "a" * _MEGABYTE})
    ),
    "a pattern of groups": lambda: _with_evaluator(
        json.dumps({"type": "regex", "value": "(" * 50_000 + ")" * 50_000})
    ),
    "a pattern of nested repeats": lambda: _with_evaluator(
        json.dumps({"type": "regex", "value": "((((a{1,1000}){1,1000}){1,1000}){1,1000}){1,1000}"})
    ),
    "a pattern of choices": lambda: _with_evaluator(
        json.dumps({"type": "regex", "value": "|".join(f"a{n}" for n in range(50_000))})
    ),
    "a pattern of sets": lambda: _with_evaluator(
        json.dumps({"type": "regex", "value": r"[\p{L}\p{N}]" * 20_000, "flags": "i"})
    ),
    "a pattern of names": lambda: _with_evaluator(
        json.dumps({"type": "regex", "value": "".join(f"(?<n{n}>a)" for n in range(20_000))})
    ),
    "a pattern of lookbehinds": lambda: _with_evaluator(
        json.dumps({"type": "regex", "value": "(?<=a" * 20_000 + ")" * 20_000})
    ),
    "a command of many words": lambda: _with_evaluator(
        f"{{type: code_judge, script: [{', '.join(['x'] * 20_000)}]}}"
    ),
    "a command of many quotes": lambda: _with_evaluator(
        json.dumps({"type": "code_judge", "script": "'" * 99_999})
    ),
    "a command of backslashes": lambda: _with_evaluator(
        json.dumps({"type": "code_judge", "script": "\\" * 100_000})
    ),
}
#: Prompts of judges, which are compiled when the suite is read.
PROMPTS: Corpus = {
    "a prompt of loops": lambda: _prompt(
        "{% for a in range(99999) %}{% for b in range(99999) %}{{ a }}{% endfor %}{% endfor %}"
    ),
    "a prompt of brackets": lambda: _prompt("{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}"),
    "a prompt of blocks": lambda: _prompt("{% if answer %}" * 10_000),
    "a prompt of filters": lambda: _prompt("{{ answer" + "|upper" * 5_000 + " }}"),
    "a prompt of variables": lambda: _prompt("{{answer}}" * 5_000),
    "a prompt of unknown variables": lambda: _prompt(
        "".join(f"{{{{answr{n}}}}}" for n in range(3_000))
    ),
    "a prompt of open braces": lambda: _prompt("{{" * 90_000),
    "a prompt of comments": lambda: _prompt("{#" * 90_000),
    "a prompt of text": lambda: _prompt("x\n" * 90_000),
    "a prompt that is too long": lambda: _prompt("x" * 3 * _MEGABYTE),
    "a long path of a prompt": lambda: _with_evaluator(
        f"{{type: llm_judge, prompt: ./{'x' * 300}.md}}"
    ),
    "a long inline prompt": lambda: _with_evaluator(
        f"{{type: llm_judge, prompt: {'x' * 300_000}}}"
    ),
    "an inline prompt of loops": lambda: _with_evaluator(
        json.dumps({"type": "llm_judge", "prompt": "{% for a in answer %}" * 15})
    ),
    "a prompt that is not UTF-8": lambda: {**_prompt(""), "prompt.md": b"\xff" * 1000},
}
#: Rows of JSONL.
ROWS: Corpus = {
    "a long row": lambda: _rows(_row(input="x" * 3 * _MEGABYTE)),
    "a long row with one sign of four bytes": lambda: _rows(
        json.dumps(
            {"id": "a", "criteria": "c", "input": "x" * 9 * _MEGABYTE + "\U0001f600"},
            ensure_ascii=False,
        )
    ),
    "a long row with an error": lambda: _rows(_row(input="x" * 3 * _MEGABYTE, criteria=1)),
    "a row of escapes": lambda: _rows(_row(input="\n" * 4 * _MEGABYTE)),
    "a row of braces in a text": lambda: _rows(_row(input="{" * 3 * _MEGABYTE)),
    "a row of numbers": lambda: _rows(_row(metadata={"a": [1] * 3 * _MEGABYTE})),
    "a row of objects": lambda: _rows(_row(metadata={"a": [{}] * 2 * _MEGABYTE})),
    "a row of lists in lists": lambda: _rows("[" * 3 * _MEGABYTE),
    "a row of quotes": lambda: _rows('"' * 3 * _MEGABYTE),
    "a row of backslashes": lambda: _rows('{"id": "' + "\\" * 3 * _MEGABYTE),
    "a row of spaces": lambda: _rows(" " * 3 * _MEGABYTE + "x"),
    "a row of one key": lambda: _rows('{"a": 1' + ', "a": 1' * 20_000 + "}"),
    "a row of many keys": lambda: _rows(
        '{"id": "a"' + "".join(f', "inptu{n}": 1' for n in range(10_000)) + "}"
    ),
    "a row of digits": lambda: _rows('{"id": ' + "9" * 5 * _MEGABYTE + "}"),
    "a row that is too long": lambda: _rows(_row(input="x" * 11 * _MEGABYTE)),
    "rows that are none": lambda: _rows("1\n" * 500_000),
    "rows of one id": lambda: _rows('{"id": "a", "input": "q", "criteria": "c"}\n' * 3_000),
    "empty rows": lambda: _rows("\n" * 2 * _MEGABYTE),
    "rows of NUL": lambda: _rows(b"\0" * _MEGABYTE + b"\n"),
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
