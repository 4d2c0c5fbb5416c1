"""Holds more memory than there may be, in several processes with less each."""

import contextlib
import os
import signal

from support.taking import count_living, take


def attack(target):
    bound = target["limits"]["memory_bytes"]
    children = []

    def start():
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            piece = b"x" * (bound // 4)
            os.write(writing, piece[:1])
            signal.pause()
        os.close(writing)
        children.append(pid)
        holds = os.read(reading, 1)
        os.close(reading)
        if not holds:
            raise MemoryError
        return bound // 4

    try:
        return take(bound, "bytes", start, lambda: count_living(children) * (bound // 4))
    finally:
        for pid in children:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
