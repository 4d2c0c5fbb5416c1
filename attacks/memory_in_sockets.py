"""Holds more memory than there may be, in what was written to sockets and nobody reads."""

import contextlib
import socket

from support.taking import take_in_processes

# As large as the host lets a buffer be.
_MOST_BYTES = 1 << 24
_WRITE = bytes(32 << 10)


def attack(target):
    return take_in_processes(target["limits"]["memory_bytes"], hold)


def hold(part, stay):
    _held, taken = _fill(part)
    stay(taken)


def _fill(most):
    """
    Fills new sockets until so much is in them, or there are no more; gives back sockets and bytes.
    """
    sockets, taken = [], 0
    with contextlib.suppress(OSError):
        while taken < most:
            pair = socket.socketpair()
            sockets += pair
            for end in pair:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
                end.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    while taken < most:
                        taken += end.send(_WRITE)
    return sockets, taken
