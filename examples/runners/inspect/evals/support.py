"""Two tasks of inspect. Its `mockllm` stands for the model, and the agent's program for what the
model would answer, so no key is needed."""

import sys
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes, match
from inspect_ai.solver import generate, system_message

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from agent import answer  # noqa: E402  # it is found there


def reply(messages, tools, tool_choice, config):
    """What the model answers. Without its usage, inspect would load a tokenizer."""
    system, user = messages[0].text, messages[-1].text
    output = ModelOutput.from_content("mockllm/model", answer(system, user))
    output.usage = ModelUsage(input_tokens=120, output_tokens=20, total_tokens=140)
    return output


def support(samples, scorer):
    return Task(
        dataset=samples,
        solver=[system_message(str(ROOT / "prompts" / "support.txt")), generate()],
        scorer=scorer,
        model=get_model("mockllm/model", custom_outputs=reply),
    )


@task
def returns():
    return support(
        [
            Sample(id="window", input="Within how many days may I return shoes?", target="30 days"),
            Sample(id="worn", input="Must shoes be unworn to return them?", target="unworn"),
        ],
        includes(),
    )


@task
def orders():
    return support(
        [Sample(id="cancel", input="Until when can I cancel an order?", target="warehouse.")],
        match(location="end"),
    )
