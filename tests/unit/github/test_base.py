"""The host that is none."""

from agentevals_action.github.base import Host
from agentevals_action.model.report import CheckReport, CommentReport
from agentevals_action.model.review import Outcome


def test_host__knows_and_writes_nothing() -> None:
    host = Host()
    assert (host.changed_files(), host.merge_base()) == (None, None)
    assert host.write_check(CheckReport("failure", "t", "s")) is None
    assert host.publish_comment(CommentReport("body", Outcome.FAILED, wanted=False)) is None
    assert host.notices == ()
