"""A support agent in small: it answers with the fact of its prompt that fits the question best.

python3 agent.py [--polite] PROMPT
"""

import re
import sys


def answer(prompt: str) -> str:
    facts, _, question = prompt.partition("Question:")
    lines = [line.removeprefix("- ") for line in facts.splitlines() if line.startswith("- ")]
    return max(lines, key=lambda fact: len(_words(fact) & _words(question)))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.lower()))


if __name__ == "__main__":
    _, *options, prompt = sys.argv[: 3 if "--polite" in sys.argv else 2]
    print(answer(prompt) + (" Have a nice day!" if options else ""), end="")
