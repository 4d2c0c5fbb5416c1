"""Runs Python tools in forks of a process that has loaded the runner, which spares each of them a start of Python.

`python3 -I forked_runs.py RUNNER_ENTRY`, where the entry becomes `__main__`, as if Python ran it. A line on stdin is a
call, `{"dir": …, "argsFile": …, "stdout": …, "stderr": …}`; one on stdout, when it has ended, its wait status.
"""

import asyncio  # noqa: F401 - many tools do, and a fork would import it anew.
import os
import sys

__file__ = sys.argv[1]
__path__ = [os.path.dirname(__file__)]
sys.path.insert(0, os.path.dirname(__path__[0]))

from secure_tool_runtime import StandIns

sys.meta_path.append(StandIns)

from __main__.json_codec import decode
from __main__.runner import main


def open_as(descriptor: int, path: str, flags: int) -> None:
    """Opens a file as a descriptor that was open on something else."""
    opened = os.open(path, flags)
    os.dup2(opened, descriptor)
    os.close(opened)


calls = os.dup(0)
answers = os.dup(1)
open_as(0, os.devnull, os.O_RDONLY)
while line := os.read(calls, 65_536):
    call = decode(line)
    pid = os.fork()
    if pid == 0:
        os.close(calls)
        os.close(answers)
        open_as(1, call["stdout"], os.O_WRONLY | os.O_CREAT)
        open_as(2, call["stderr"], os.O_WRONLY | os.O_CREAT)
        os.chdir(call["dir"])
        sys.argv[:] = [__file__, call["argsFile"]]
        sys.exit(main(sys.argv))
    _, status = os.waitpid(pid, 0)
    os.write(answers, b"%d\n" % status)
