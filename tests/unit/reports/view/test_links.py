"""Short names of paths."""

from agentevals_action.reports.view.links import short_names


def test_short_names__lose_what_all_have_in_common() -> None:
    paths = ["evals/refunds/EVAL.yaml", "evals/tone/EVAL.yaml", "evals/tone/de/EVAL.yaml"]
    assert list(short_names(paths).values()) == ["refunds", "tone", "tone/de"]


def test_short_names__are_the_path_where_nothing_would_be_left() -> None:
    assert short_names(["evals/EVAL.yaml"]) == {"evals/EVAL.yaml": "evals/EVAL.yaml"}
    paths = ["evals/EVAL.yaml", "evals/tone/EVAL.yaml"]
    assert list(short_names(paths).values()) == ["evals/EVAL.yaml", "tone"]
    assert short_names([]) == {}
