"""
Sees when others use what all sandboxes share, and keeps them waiting: by inotify(7), and by notes
and leases of fcntl(2).
"""

import fcntl
import os
import signal
import tempfile

from support.attempts import attempt
from support.kernel import call

_SHARED = "/usr"
_IN_ACCESS = 1


def attack(target):
    return attempt({"inotify": _events, "F_NOTIFY": _notes, "F_SETLEASE": _lease})


def _events():
    descriptor = call("inotify_init1", os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        call("inotify_add_watch", descriptor, _SHARED.encode(), _IN_ACCESS)
        os.listdir(_SHARED)
        return f"{len(os.read(descriptor, 4096))} bytes of events of {_SHARED}"
    finally:
        os.close(descriptor)


def _notes():
    seen = []
    before = signal.signal(signal.SIGIO, lambda *_: seen.append(_SHARED))
    shared = os.open(_SHARED, os.O_RDONLY)
    try:
        fcntl.fcntl(shared, fcntl.F_NOTIFY, fcntl.DN_ACCESS)
        os.listdir(_SHARED)
    finally:
        os.close(shared)
        signal.signal(signal.SIGIO, before)
    return f"was told that somebody read {_SHARED}" if seen else None


def _lease():
    """
    Of a file of its own. One of the tools would do, where the worker's user owns them: who opens it
    would wait.
    """
    with tempfile.NamedTemporaryFile() as file, open(file.name) as reading:
        file.close()
        fcntl.fcntl(reading, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        return "a lease of a file that is open for reading"
