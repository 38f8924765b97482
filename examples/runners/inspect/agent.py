"""A support agent in small: it answers with the fact of its prompt that fits the question best."""

import re


def answer(prompt: str, question: str) -> str:
    facts = [line.removeprefix("- ") for line in prompt.splitlines() if line.startswith("- ")]
    return max(facts, key=lambda fact: len(_words(fact) & _words(question)))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.lower()))
