"""
Sends signal 0, which does nothing, to every process number, to see which of them could be sent
another.
"""

import os

from support.attempts import answer

_MOST = 40_000
_MOST_NAMED = 5


def attack(target):
    own = {1, os.getpid(), os.getppid()}
    known = {target["sibling_pid"], target["worker_pid"]}
    others = [pid for pid in {*range(1, _MOST), *known} - own if _accepts(pid) and _is_process(pid)]
    named = ", ".join(str(pid) for pid in sorted(others, key=lambda pid: (pid not in known, pid))[:_MOST_NAMED])
    return answer(
        [f"{len(others)} processes would take a signal: {named}"] if others else [],
        [f"of {_MOST} numbers only those of its own sandbox"],
    )


def _accepts(pid):
    try:
        os.kill(pid, 0)
        return True
    except OSError:
        return False


def _is_process(pid):
    """Not a thread, such as one of this very process."""
    try:
        os.close(os.pidfd_open(pid))
        return True
    except OSError:
        return False
