"""Leaves shared memory, message queues and semaphores for a later call."""

import ctypes
import os

from support.attempts import attempt
from support.kernel import call

_CREATE = 0o1000
_ACCESS = 0o666
_BYTES = 4096
_REMOVE = 0

_libc = ctypes.CDLL(None, use_errno=True)


def attack(target):
    # The same number in both calls, and nobody else's.
    key = int(target["token"][:7], 16) | 1
    queue = f"/str-{target['token']}".encode()
    is_first = target["round"] == 1
    flags = _CREATE | _ACCESS if is_first else 0
    found = attempt(
        {
            "shared memory": lambda: _object("shmget", "shmctl", is_first, key, _BYTES if is_first else 0, flags),
            "message queue": lambda: _object("msgget", "msgctl", is_first, key, flags),
            "semaphores": lambda: _object("semget", "semctl", is_first, key, 1 if is_first else 0, flags),
            "message queue of POSIX": lambda: _queue(is_first, queue),
        }
    )
    return found if not is_first else {"reached": False, "evidence": found["evidence"]}


def _object(get, control, is_first, *arguments):
    """One of System V; see sysvipc(7)."""
    identifier = call(get, *arguments)
    if is_first:
        return f"left object {identifier}"
    # semctl has a number in between.
    command = (0, _REMOVE) if control == "semctl" else (_REMOVE, None)
    getattr(_libc, control)(identifier, *command)
    return f"found object {identifier}"


def _queue(is_first, name):
    flags = os.O_RDWR | (os.O_CREAT if is_first else 0)
    descriptor = _libc.mq_open(name, flags, _ACCESS, None)
    if descriptor == -1:
        raise OSError(ctypes.get_errno(), "mq_open")
    os.close(descriptor)
    if is_first:
        return "left one"
    _libc.mq_unlink(name)
    return "found it"
