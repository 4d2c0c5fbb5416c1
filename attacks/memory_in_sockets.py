"""Holds more memory than there may be, in what was written to sockets and nobody reads."""

import contextlib
import os
import signal
import socket

from support.taking import count_living, take

# As large as the host lets a buffer be.
_MOST_BYTES = 1 << 24
_WRITE = bytes(32 << 10)


def attack(target):
    bound = target["limits"]["memory_bytes"]
    holders = []

    def start():
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            _held, taken = _fill(bound // 4)
            os.write(writing, b"%d" % taken)
            signal.pause()
        os.close(writing)
        taken = os.read(reading, 20)
        os.close(reading)
        holders.append((pid, int(taken)))
        return int(taken)

    try:
        return take(bound, "bytes", start, lambda: sum(taken for pid, taken in holders if count_living([pid])))
    finally:
        for pid, _taken in holders:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _fill(most):
    """Fills new sockets until so much is in them, or there are no more; gives back sockets and bytes."""
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
