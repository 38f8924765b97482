"""The child process that renders a template of a user: `python -m` this module. Standard input is
a base64 text of the pickled name of a function of `templating` and its arguments; standard output
is a JSON object with the `value`, or the `problem`.

It is started by `rendering`, which ends it when it takes too long."""

import base64
import codecs
import contextlib
import json
import os
import pickle
import resource
import sys

from agentevals_action import templating

#: Seconds of processor time, and bytes of memory.
TIME_LIMIT, MEMORY_LIMIT = 5, 2 * 1024**3
#: The user without rights; its programs never run as this one.
_NOBODY = 65534


def _main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (TIME_LIMIT, TIME_LIMIT + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    # The parent process wrote it: texts of a pull request are strings in it. This imports modules,
    # and Jinja imports a codec when it reads a string: both come before the change of the user, who
    # may not read the folder of the interpreter.
    function, arguments = pickle.loads(base64.b64decode(sys.stdin.read()))  # noqa: S301
    codecs.lookup("unicode-escape")
    if os.geteuid() == 0:
        # Attack: a template that leaves the sandbox would read the token in /proc/1/environ.
        with contextlib.suppress(OSError):  # a container that has no other user
            os.setgroups(())
            os.setgid(_NOBODY)
            os.setuid(_NOBODY)
    try:
        answer = json.dumps({"value": getattr(templating, function)(*arguments)})
    except (TypeError, ValueError) as error:
        answer = json.dumps({"problem": str(error)})
    sys.stdout.write(answer)


if __name__ == "__main__":
    _main()
