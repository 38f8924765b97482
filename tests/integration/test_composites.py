"""Composites from a suite to the results file: scores, gates by their paths, what an error leaves
of them."""

from pathlib import Path

from tests.support import command

ECHO = """\
targets:
  - {name: default, provider: cli, command: [cat], judge_target: judge}
  - {name: judge, provider: cli, command: [cat]}
  - {name: paid, provider: openai, model: m, api_key: "${{ PAID_KEY }}"}
"""


def test_run__asks_for_the_key_of_a_judge_inside(tmp_path: Path) -> None:
    (tmp_path / ".agentv").mkdir()
    (tmp_path / ".agentv/targets.yaml").write_text(ECHO)
    judge = (
        "{type: composite, assert: [{type: composite, assert: [{type: llm_judge, target: paid}]}]}"
    )
    (tmp_path / "EVAL.yaml").write_text(
        f"name: paid\ntests: [{{id: a, input: q, criteria: c, assert: [{judge}]}}]\n"
    )

    done = command.run(tmp_path, "run")

    assert done.code == 2
    assert "the target `paid` needs PAID_KEY" in done.out + done.err
