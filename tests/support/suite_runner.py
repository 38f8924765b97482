"""A stand-in for a runner of others: `suite_runner.py SUITE SAMPLES RESULTS [SELECTION]`.

It asks the agent of `agent.json`, which knows a `greeting`, and writes results as the format
`agentevals` has them. A line of a suite is a test. `agent.json` may say what the runner does wrong:
`do` (a statement for a suite), `rows` (other fields of a test's rows), `fails` (the starts on this
side, from 1, in which a test fails). `CALLS` names the file that notes all starts."""

import json
import os
import sys
from pathlib import Path

suite, samples, results, *selection = sys.argv[1:]
file = Path(results, "results.jsonl")
agent = json.loads(Path("agent.json").read_text())
chosen = Path(selection[0]).read_text().splitlines() if selection else None
number = 1
if calls := os.environ.get("CALLS"):
    tree = str(Path.cwd())
    earlier = [json.loads(line) for line in Path(calls).read_text().splitlines()]
    number += sum((call["tree"], call["suite"]) == (tree, suite) for call in earlier)
    seen = sorted(name for name in os.environ if name.endswith("_KEY"))
    call = {"tree": tree, "suite": suite, "samples": int(samples), "chosen": chosen, "keys": seen}
    with Path(calls).open("a") as log:
        log.write(json.dumps(call) + "\n")
exec(agent.get("do", {}).get(suite, ""))
with file.open("w") as out:
    for line, text in enumerate(Path(suite).read_text().splitlines(), 1):
        test = json.loads(text)
        name = test["id"]
        if chosen is not None and name not in chosen:
            continue
        answer = agent["greeting"].format(test["ask"])
        passed = test["want"] in answer and number not in agent.get("fails", {}).get(name, ())
        row = {
            "evalId": name,
            "verdict": "pass" if passed else "fail",
            "question": test["ask"],
            "candidateAnswer": answer,
            "misses": [] if passed else [f"it does not say {test['want']}"],
            "line": line,
            **agent.get("rows", {}).get(name, {}),
        }
        out.write((json.dumps(row) + "\n") * int(samples))
