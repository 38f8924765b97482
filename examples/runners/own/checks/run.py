# checks/run.py SUITE RESULTS [SELECTION]
import json
import subprocess
import sys
import tomllib
from pathlib import Path

suite, results, *selection = map(Path, sys.argv[1:])
wanted = selection[0].read_text().splitlines() if selection else None
with results.open("w") as file:
    for test in tomllib.loads(suite.read_text())["tests"]:
        if wanted is not None and test["id"] not in wanted:
            continue
        line = {"evalId": test["id"], "question": test["question"]}
        words = [sys.executable, "agent.py"]
        agent = subprocess.run(words, input=test["question"], capture_output=True, text=True)
        if agent.returncode:
            line["error"] = {"message": agent.stderr[-500:] or "the agent failed"}
        else:
            passed = test["contains"] in agent.stdout
            line["verdict"] = "pass" if passed else "fail"
            line["candidateAnswer"] = agent.stdout
            line["misses"] = [] if passed else [f"{test['contains']!r} is not in the answer"]
        print(json.dumps(line), file=file)
