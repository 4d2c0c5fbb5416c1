"""
Leaves processes that go on after the call: one far from its parent, one that holds the call's
output.
"""

import os
import signal

from support.attempts import answer
from support.kernel import call
from support.staying import staying_command, staying_name, stays

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_KINDS = ("detached", "holding")


def attack(target):
    """Every call looks for those of the call before, and leaves some of its own."""
    this = target["round"]
    found = [kind for kind in _KINDS if stays(staying_name(kind, this - 1, target))]
    call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for kind in _KINDS:
        _leave(staying_name(kind, this, target), is_detached=kind == "detached")
    return answer([f"the {kind} one of the call before is still there" for kind in found], ["none of the call before"])


def _leave(name, is_detached):
    started, starts = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        _ignore_signals()
        call("prctl", _PR_SET_PDEATHSIG, 0, 0, 0, 0)
        if is_detached:
            os.chdir("/")
            os.closerange(0, starts)
        os.set_inheritable(starts, True)
        command = staying_command(name, starts)
        os.execv(command[0], command)
    os.close(starts)
    # It closes the other end when it can be reached.
    os.read(started, 1)
    os.close(started)


def _ignore_signals():
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_IGN)
        except OSError:
            # Those that the C library keeps for itself.
            pass
