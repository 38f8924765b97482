"""An agent that needs no model: `agent.py QUESTION FILE`."""

import sys
from pathlib import Path

question, file = sys.argv[1:3]
if "Spain" in question:
    sys.exit("the API answers 500")
Path(file).write_text("The capital is Paris." if "France" in question else "I do not know.")
