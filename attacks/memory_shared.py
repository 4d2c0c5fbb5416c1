"""Holds more memory than there may be, in mappings of processes that never touched them: parents have, which ended."""

import contextlib
import mmap
import os
import signal

from support.taking import count_living, take


def attack(target):
    bound = target["limits"]["memory_bytes"]
    heirs = []

    def start():
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            shared = mmap.mmap(-1, bound // 4)
            shared.write(b"x" * len(shared))
            # A child has the mapping and, until it touches them, none of its pages.
            if os.fork() > 0:
                os._exit(0)
            os.write(writing, b"%d" % os.getpid())
            signal.pause()
        os.close(writing)
        os.waitpid(pid, 0)
        heir = os.read(reading, 20)
        os.close(reading)
        if not heir:
            raise MemoryError
        heirs.append(int(heir))
        return bound // 4

    try:
        return take(bound, "bytes", start, lambda: count_living(heirs) * (bound // 4))
    finally:
        for pid in heirs:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
