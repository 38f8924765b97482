"""What refusals of the vendors mean: one table for all models."""

from typing import Any

import pytest

from agentevals_action.errors import AttemptError, TargetDead
from tests.support.anthropic_server import failure as anthropic_failure
from tests.support.anthropic_server import message
from tests.support.gemini_server import bad_key, content
from tests.support.gemini_server import failure as gemini_failure
from tests.support.model_targets import ANTHROPIC, AZURE, GEMINI, OPENAI, ModelTarget
from tests.support.openai_server import Reply, azure_failure, failure
from tests.support.stand_in import Sent

SPENT = {"error_code": "enforced_spend_limit_reached"}


@pytest.mark.parametrize(
    ("model", "reply", "hint"),
    [
        (OPENAI, failure(401, "Incorrect key", "invalid_api_key"), "OPENAI_API_KEY"),
        (OPENAI, failure(404, "no model", "model_not_found"), "knows the model m"),
        (OPENAI, failure(400, "invalid model", "model_not_found"), "knows the model m"),
        (OPENAI, failure(429, "over your quota", "insufficient_quota"), "no credit"),
        (ANTHROPIC, anthropic_failure(403, "no permission"), "ANTHROPIC_API_KEY"),
        (ANTHROPIC, anthropic_failure(404, "model: m"), "knows the model m"),
        (ANTHROPIC, anthropic_failure(402, "an issue with your billing"), "no credit"),
        (ANTHROPIC, anthropic_failure(429, "Spend limit reached.", details=SPENT), "no credit"),
        (AZURE, azure_failure(401, "invalid subscription key", "401"), "AZURE_OPENAI_API_KEY"),
        (AZURE, azure_failure(404, "gone", "DeploymentNotFound"), "a deployment named my gpt"),
        (GEMINI, bad_key(), "GEMINI_API_KEY"),
        (GEMINI, gemini_failure(404, "models/m is not found"), "knows the model m"),
    ],
)
def test_complete__what_ends_the_target(model: ModelTarget, reply: Sent, hint: str) -> None:
    error = model.refused(reply, api_key="sk-1")
    assert isinstance(error, TargetDead)
    assert hint in error.hint


@pytest.mark.parametrize(
    ("model", "reply", "problem"),
    [
        (OPENAI, failure(400, "context length\nexceeded"), "answered 400: context length exceeded"),
        (OPENAI, Reply(body={"choices": []}), "not a chat completion"),
        (OPENAI, Reply(text="partly", finish_reason="content_filter"), "content filter"),
        (OPENAI, Reply(text=""), "the reply is empty"),
        (ANTHROPIC, Sent({"type": "error"}), "the reply is not a message"),
        (ANTHROPIC, Sent(message("partly", stop_reason="refusal")), "refused to answer"),
        (ANTHROPIC, Sent(message(stop_reason="max_tokens")), "raise `max_tokens`"),
        (GEMINI, Sent(content(finish_reason="SAFETY")), "the vendor stopped the reply (SAFETY)"),
        (GEMINI, Sent(content(finish_reason="MAX_TOKENS")), "raise `maxOutputTokens`"),
    ],
)
def test_complete__an_error_of_this_test_alone(
    model: ModelTarget, reply: Any, problem: str
) -> None:
    error = model.refused(reply, api_key="sk-1")
    assert (type(error), error.kind) == (AttemptError, "target")
    assert problem in str(error)
