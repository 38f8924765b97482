"""Grades an answer that ought to be JSON: the share of the fields of `config.fields` that it has, and that are not empty."""

import json
import sys

case = json.load(sys.stdin)
wanted = case["config"]["fields"]
try:
    answer = json.loads(case["candidateAnswer"])
except ValueError:
    answer = {}

hits = [f"has {field}" for field in wanted if answer.get(field)]
misses = [f"has no {field}" for field in wanted if not answer.get(field)]
print(json.dumps({"score": len(hits) / len(wanted), "hits": hits, "misses": misses}))
