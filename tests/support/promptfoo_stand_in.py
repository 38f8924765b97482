#!/usr/bin/env python3
"""`promptfoo eval` for one prompt in a file, one provider that answers with its prompt, tests with
`icontains`, and a key that it must see."""

import argparse
import json
import os
from pathlib import Path
from typing import Any

import yaml


def main() -> None:
    """Writes the results of the tests, or of those that failed in another file of results."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("command", choices=["eval"])
    for name in ("--config", "--output", "--repeat", "--filter-failing"):
        parser.add_argument(name)
    given, _ = parser.parse_known_args()
    config = yaml.safe_load(Path(given.config).read_text("utf-8"))
    tests = config["tests"]
    if given.filter_failing:
        failing = json.loads(Path(given.filter_failing).read_text("utf-8"))["results"]["results"]
        tests = [test for test in tests if any(test["vars"] == each["vars"] for each in failing)]
    (file,) = (prompt.removeprefix("file://") for prompt in config["prompts"])
    text = Path(given.config).parent.joinpath(file).read_text("utf-8").strip()
    (provider,) = config["providers"]
    rows = [
        _row(number, test, text, provider)
        for number, test in enumerate(tests)
        for _ in range(int(given.repeat))
    ]
    prompts = [{"provider": provider, "label": f"{file}: {text}", "raw": text}]
    document = {"results": {"version": 3, "prompts": prompts, "results": rows}, "config": {}}
    Path(given.output).write_text(json.dumps(document), "utf-8")


def _row(number: int, test: dict[str, Any], text: str, provider: str) -> dict[str, Any]:
    answer = text.replace("{{question}}", test["vars"]["question"])
    has_key = provider == "echo" or bool(os.environ.get("OPENAI_API_KEY"))
    (check,) = test["assert"]
    passed = has_key and check["value"].lower() in answer.lower()
    component = {"pass": passed, "score": int(passed), "reason": "", "assertion": check}
    return {
        "testIdx": number,
        "promptIdx": 0,
        "success": passed,
        "failureReason": 0 if passed else 1 if has_key else 2,
        "score": int(passed),
        "error": None if has_key else "API key is not set",
        "vars": test["vars"],
        "testCase": test,
        "provider": {"id": provider, "label": ""},
        "prompt": {"raw": answer, "label": text},
        "response": {"output": answer},
        "gradingResult": {"reason": "", "componentResults": [component]},
    }


if __name__ == "__main__":
    main()
