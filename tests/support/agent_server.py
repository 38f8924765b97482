"""An agent behind an HTTP service on loopback: it keeps requests, and answers by script or by a
function."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.stand_in import Received, Sent, StandIn


@dataclass(frozen=True)
class Answer(Sent):
    """One answer: a text is sent unchanged."""

    body: Any = ""

    def data(self, received: Received) -> bytes:
        return self.body.encode() if isinstance(self.body, str) else super().data(received)


class AgentServer(StandIn[Received, Answer]):
    """`reply` answers every request without a scripted answer, or is a function of the request.
    With `key` every other bearer token is refused."""

    def __init__(
        self,
        reply: Answer | Callable[[Received], Any] | Any = "hello",
        *,
        script: Sequence[Answer] = (),
        key: str = "",
    ) -> None:
        super().__init__(script)
        self._reply = reply
        self._key = key

    @classmethod
    def matching(cls, replies: Mapping[str, str]) -> "AgentServer":
        """Answers by the first pattern that is found in the `prompt` of a JSON body; any other
        request is refused."""

        def choose(received: Received) -> Answer:
            prompt = received.body["prompt"]
            found = (reply for pattern, reply in replies.items() if re.search(pattern, prompt))
            refusal = Answer("there is no answer to this", status=400)
            return next((Answer(reply) for reply in found), refusal)

        return cls(choose)

    def reply(self, received: Received) -> Answer:
        if self._key and received.headers.get("authorization") != f"Bearer {self._key}":
            return Answer({"error": {"message": "who are you?"}}, status=401)
        reply = self._reply(received) if callable(self._reply) else self._reply
        return reply if isinstance(reply, Answer) else Answer(reply)
