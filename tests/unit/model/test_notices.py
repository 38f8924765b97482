from agentevals_action.model.notices import Notices


def test_notices__are_told_once_in_their_order_and_counted() -> None:
    notices = Notices()
    for sentence in ("b", "a", "b", "b"):
        notices.add(sentence)
    assert notices.sentences() == ("b (3 times)", "a")
