"""Starts children in new namespaces by clone(2)."""

import signal

from support.attempts import attempt
from support.kernel import call
from support.namespaces import KINDS, child_in_new


def attack(target):
    return attempt(
        {kind: lambda kind=kind: child_in_new(kind, lambda: _clone(KINDS[kind])) for kind in KINDS}
    )


def _clone(flag):
    return call("clone", flag | signal.SIGCHLD, 0, 0, 0, 0)
