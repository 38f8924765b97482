"""Tasks of inspect that need no model: its `mockllm` answers."""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessageSystem,
    ChatMessageUser,
    ContentText,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import Score, includes, match, mean, scorer
from inspect_ai.solver import generate, solver


def answers(text):
    """A model that gives one answer. Without a usage, it counts tokens by a file of the network."""
    output = ModelOutput.from_content("mockllm/model", text)
    output.usage = ModelUsage(
        input_tokens=10, output_tokens=3, total_tokens=18, input_tokens_cache_read=5
    )
    outputs = [output.model_copy(deep=True) for _ in range(50)]
    return get_model("mockllm/model", custom_outputs=outputs)


@scorer(metrics={"accuracy": [mean()], "style": [mean()]})
def quality():
    async def score(state, target):
        style = 0.5 if "Paris" in state.output.completion else 0.25
        return Score(value={"accuracy": 1, "style": style}, explanation="short")

    return score


@scorer(metrics=[mean()])
def unscored():
    async def score(state, target):
        return Score.unscored(reason="grader_failed", explanation="the grader did not answer")

    return score


@solver
def outage():
    async def solve(state, generate):
        if state.sample_id == "outage":
            raise RuntimeError("the API answers 500")
        return state

    return solve


@task
def capitals():
    return Task(
        dataset=[
            Sample(id="france", input="Capital of France?", target="Paris", metadata={"n": 1}),
            Sample(id="italy, or [Rome]?", input="Capital of Italy?", target=["Rome", "Roma"]),
            Sample(id="outage", input="Capital of Spain?", target="Madrid"),
        ],
        solver=[outage(), generate()],
        scorer=[match(), quality()],
        model=answers("Paris"),
    )


@task
def chat():
    return Task(
        dataset=[
            Sample(
                input=[
                    ChatMessageSystem(content="Be brief."),
                    ChatMessageUser(content=[ContentText(text="Say yes.")]),
                ],
                target="yes",
            ),
            Sample(input="Say no.", target="no", files={"note.txt": "no"}),
        ],
        solver=generate(),
        scorer=includes(),
        message_limit=2,
        model=answers("Yes, sir."),
    )


@task
def grader():
    return Task(
        dataset=[Sample(id="a", input="Say x.", target="x")],
        solver=generate(),
        scorer=unscored(),
        model=answers("x"),
    )


@task
def unjudged():
    return Task(dataset=[Sample(id="a", input="Say x.")], solver=generate(), model=answers("x"))
