"""
Leaves namespaces for new ones by unshare(2); the owner of a new user namespace has every capability
in it.
"""

import os

from support.attempts import attempt, in_child
from support.kernel import call
from support.namespaces import KINDS, name_of


def attack(target):
    return attempt({kind: in_child(lambda kind=kind: _leave(kind)) for kind in KINDS})


def _leave(kind):
    before = name_of(kind)
    call("unshare", KINDS[kind])
    if kind == "pid":
        return _of_child(before)
    return f"{before} -> {name_of(kind)}"


def _of_child(before):
    """The first process of a new pid namespace is the next child, and its number there is 1."""
    pid = os.fork()
    if pid == 0:
        os._exit(os.getpid() == 1)
    is_first = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    return f"{before} -> a new one" if is_first else None
