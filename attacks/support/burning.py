"""For attacks that take processor time."""

import os
import time


def burn(seconds):
    """Uses processor time; returns the total of this process."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
    return time.process_time()


def answer(used, bound):
    """An attack's answer."""
    return {"reached": used > bound, "evidence": f"took {used:.1f} s of processor time, bound {bound} s"}


def start_burning(seconds):
    """The same in a child; returns its id."""
    pid = os.fork()
    if pid == 0:
        burn(seconds)
        os._exit(0)
    return pid
