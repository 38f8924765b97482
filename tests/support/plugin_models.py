"""The model that `claude plugin eval` asks in tests, for the plugin in `data/runners/claude`: it
follows the text of the skill that it gets."""

import json

from tests.support.agent_models import AgentModels, Call, Turn
from tests.support.stand_in import Received, Sent

#: The reason of the server's refusals.
LIMITED = "no more"
VARIABLES = {"ANTHROPIC_API_KEY": "sk-ant-test", "CLAUDE_CODE_MAX_RETRIES": "1"}
#: Parts of prompts to which the server answers 429: of the agent, and of a judge.
_OUTAGES = ("Greet nobody", "judge has an outage")
_SKILL = Call("Skill", {"skill": "greeter:greet"})
_ORDER = Call("mcp__plugin_greeter_shop__order", {"count": "three"})


class _Models(AgentModels):
    def reply(self, received: Received) -> Sent:
        if received.data and any(each in json.dumps(received.body) for each in _OUTAGES):
            error = {"type": "rate_limit_error", "message": LIMITED}
            return Sent({"type": "error", "error": error}, 429)
        return super().reply(received)


def plugin_models() -> AgentModels:
    """A server, not yet started."""
    return _Models(
        {
            "PASS if the reply is polite": [Turn("PASS")],
            "Say goodbye to Bob": [Turn("Goodbye, Bob.")],
            "Say Good day and": [Turn("Good day, Ada.")],
            "Say Hello and": [Turn("Hello, Ada.")],
            "Greet Ada": [Turn(calls=(_SKILL,))],
            "Greet the whole town": [Turn("Good day first.", (_SKILL,))],
            "Order three": [Turn(calls=(_ORDER,))],
            "Say nothing": [Turn("Nothing.")],
        }
    )
