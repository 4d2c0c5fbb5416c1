"""Starts more processes than there may be."""

import os
import signal

from support.taking import take


def attack(target):
    children = []

    def start():
        pid = os.fork()
        if pid == 0:
            signal.pause()
        children.append(pid)
        return 1

    try:
        return take(target["limits"]["processes"], "processes", start)
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
