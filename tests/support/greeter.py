"""The files of an agent that greets, with a suite that a judge and an exact check score."""

from tests.support.repositories import Files

SUITE = """\
name: greeter
tests:
  - id: greets
    input: Ada
    assert:
      - {name: by-name, type: contains, value: Ada, required: true}
  - id: polite
    input: Bob
    assert:
      - {name: judged, type: code_judge, exit_code: true, script: [sh, judges/polite.sh]}
"""
TARGETS = "targets:\n  - {name: default, provider: cli, command: [sh, agent.sh], cwd: /}\n"
GOOD = 'read name; echo "Good day, $name."\n'
#: Passes an answer with `Good day`.
JUDGE = "grep -q 'Good day'\n"
FILES: Files = {
    "evals/EVAL.yaml": SUITE,
    "evals/judges/polite.sh": JUDGE,
    ".agentv/targets.yaml": TARGETS,
    "agent.sh": GOOD,
}
