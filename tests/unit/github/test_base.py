"""The host that is none."""

import io

from agentevals_action.github.base import Host, LocalHost
from agentevals_action.model.report import CheckReport, CommentReport
from agentevals_action.model.review import Outcome


def test_local__prints_the_comment_and_does_nothing_else() -> None:
    stream = io.StringIO()
    host: Host = LocalHost(stream)
    assert (host.changed_files(), host.merge_base(), host.start_check()) == (None, None, None)
    assert host.finish_check(CheckReport("failure", "t", "s")) is None
    assert (
        host.publish_comment(CommentReport("# Two tests regressed ü", Outcome.FAILED, wanted=False))
        is None
    )
    assert stream.getvalue() == "# Two tests regressed ü\n"
    assert host.notices == ()
