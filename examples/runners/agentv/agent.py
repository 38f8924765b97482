"""A support agent in small: it answers with the fact of its prompt that fits the question best.

python3 agent.py QUESTION_FILE ANSWER_FILE
"""

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
    question, output = map(Path, sys.argv[1:])
    output.write_text(answer(question.read_text(encoding="utf-8")), encoding="utf-8")
