"""
Leaves processes that go on after the call: one far from its parent, one that holds the call's
output.
"""

import os
import signal
import socket
import sys
import time

from support.attempts import answer
from support.kernel import call

_SECONDS = 30
_WAY_OUT_SECONDS = 1
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_KINDS = ("detached", "holding")
# Its command line is what the judge looks for; see worker/doctor/attacks/left-processes.ts.
_STAYS = """
import os, socket, sys, time
heard = socket.socket(socket.AF_UNIX)
heard.bind("\\0" + sys.argv[1])
heard.listen()
os.close(int(sys.argv[3]))
time.sleep(float(sys.argv[2]))
"""


def attack(target):
    """Every call looks for those of the call before, and leaves some of its own."""
    this = target["round"]
    found = [kind for kind in _KINDS if _stays(_name(kind, this - 1, target))]
    call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for kind in _KINDS:
        _leave(_name(kind, this, target), is_detached=kind == "detached")
    return answer([f"the {kind} one of the call before is still there" for kind in found], ["none of the call before"])


def _name(kind, of_round, target):
    return f"str-left-{kind}-{of_round}-{target['token']}"


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
        command = [sys.executable, "-I", "-S", "-c", _STAYS, name, str(_SECONDS), str(starts)]
        os.execv(sys.executable, command)
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


def _stays(name):
    """
    A process on its way out of the kernel runs nothing, but its socket answers some milliseconds
    longer.
    """
    if not _answers(name):
        return False
    time.sleep(_WAY_OUT_SECONDS)
    return _answers(name)


def _answers(name):
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            asking.connect("\0" + name)
            return True
        except OSError:
            return False
