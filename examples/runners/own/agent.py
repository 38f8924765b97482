"""A support agent in small: it answers with the fact of its prompt that fits the question best."""

import re
import sys
from pathlib import Path

PROMPT = Path(__file__).parent / "prompts" / "support.txt"


def answer(question: str) -> str:
    lines = PROMPT.read_text(encoding="utf-8").splitlines()
    facts = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    return max(facts, key=lambda fact: len(_words(fact) & _words(question)))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.lower()))


if __name__ == "__main__":
    print(answer(sys.stdin.read()))
