"""The first difference from the nearest recorded request."""

from typing import Any

import pytest

from agentevals_action.targets.calls.request_difference import first_difference

REQUEST: dict[str, Any] = {
    "provider": "openai",
    "options": {"model": "m"},
    "sample": 1,
    "messages": [
        {"role": "system", "content": "Be kind.\nBe brief."},
        {"role": "user", "content": "Hi"},
    ],
}


def changed(**fields: Any) -> dict[str, Any]:
    return {**REQUEST, **fields}


@pytest.mark.parametrize(
    ("recorded", "wanted"),
    [
        ([], ""),
        ([changed(sample=2)], "`sample` is 1 instead of 2"),
        ([changed(options={"model": "n"})], '`options.model` is "m" instead of "n"'),
        ([changed(options={})], '`options.model` ("m") is new'),
        ([changed(options={"model": "m", "temperature": 0})], "`options.temperature` is missing"),
        ([changed(sample=True)], "`sample` is 1 instead of true"),
        # The one with the most values in common, not the first.
        (
            [changed(provider="azure", options={"model": "n"}), changed(sample=3)],
            "`sample` is 1 instead of 3",
        ),
    ],
)
def test_difference__of_the_nearest_request(recorded: list[dict[str, Any]], wanted: str) -> None:
    assert first_difference(REQUEST, recorded) == wanted


def test_difference__of_a_long_text_shows_the_line_and_what_differs_in_it() -> None:
    start = "a line of the prompt that both have in common, word for word, and it ends with "
    messages = [{"role": "system", "content": f"Be kind.\n{start}tea."}, REQUEST["messages"][1]]
    recorded = [{"role": "system", "content": f"Be kind.\n{start}milk."}, REQUEST["messages"][1]]
    assert first_difference(changed(messages=messages), [changed(messages=recorded)]) == (
        "`messages[0].content` (line 2) is "
        '"…d, and it ends with tea." instead of "…d, and it ends with milk."'
    )


def test_difference__of_a_text_that_only_goes_on() -> None:
    messages = [
        {"role": "system", "content": "Be kind.\nBe brief.\nBe quick."},
        REQUEST["messages"][1],
    ]
    assert first_difference(changed(messages=messages), [REQUEST]) == (
        '`messages[0].content` (line 2) is "Be brief. Be quick." instead of "Be brief."'
    )


def test_difference__of_a_judge_s_prompt_is_not_its_mark() -> None:
    def asked(mark: str, answer: str) -> dict[str, Any]:
        text = f"Between {mark * 32}:\n<answer>\n{answer}\n</answer>"
        return changed(messages=[{"role": "user", "content": text}])

    assert first_difference(asked("a", "tea"), [asked("b", "milk")]) == (
        '`messages[0].content` (line 3) is "tea </answer>" instead of "milk </answer>"'
    )
    assert '"Between aaaa' in first_difference(asked("a", "tea"), [asked("b", "tea")])
