"""A stand-in for a coding agent: it writes release notes by the rules of its skill that it understands. Put a real
one into `.agentv/targets.yaml`, as `provider: claude-cli`, and nothing else has to change."""

import re
from pathlib import Path

#: The folder of the test is the current one: the skill is installed in it, and the files of the test are there.
file = Path(".claude/skills/release-notes/SKILL.md")
skill = file.read_text().lower() if file.is_file() else ""  # the variant `without_skill` has none
changes = Path("evals/files/changes.txt").read_text().splitlines()

if "users" in skill:
    changes = [line for line in changes if not line.startswith(("chore:", "ci:"))]
if "breaking" in skill:
    changes.sort(key=lambda line: not line.startswith("breaking:"))
if "pull request" not in skill:
    changes = [re.sub(r" \(#\d+\)", "", line) for line in changes]

notes = "".join(f"- {line}\n" for line in changes)
Path("NOTES.md").write_text(notes)
print(notes, end="")
