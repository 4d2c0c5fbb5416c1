"""For attacks that take processor time."""

import os
import time


def burn(seconds):
    """Takes so much processor time of this process; gives back what it has taken since it began."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
    return time.process_time()


def told(used, bound):
    """An attack's answer."""
    return {"reached": used > bound, "evidence": f"took {used:.1f} s of processor time, bound {bound} s"}


def start_burning(seconds):
    """The same in a process of its own, whose id it gives back."""
    pid = os.fork()
    if pid == 0:
        burn(seconds)
        os._exit(0)
    return pid
