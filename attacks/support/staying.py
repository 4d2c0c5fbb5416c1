"""Processes that are to go on after their call, and where they answer as long as they do."""

import socket
import sys
import time

STAYS_SECONDS = 30
_WAY_OUT_SECONDS = 1
# Its command line is what the judge looks for; see worker/doctor/attacks/left-processes.ts.
_STAYS = """
import os, socket, sys, time
heard = socket.socket(socket.AF_UNIX)
heard.bind("\\0" + sys.argv[1])
heard.listen()
os.close(int(sys.argv[3]))
time.sleep(float(sys.argv[2]))
"""


def staying_name(kind, of_round, target):
    return f"str-left-{kind}-{of_round}-{target['token']}"


def staying_command(name, closes):
    """Runs such a process, which closes a descriptor once it can be reached."""
    return [sys.executable, "-I", "-S", "-c", _STAYS, name, str(STAYS_SECONDS), str(closes)]


def stays(name):
    """
    A process on its way out of the kernel runs nothing, but its socket answers some milliseconds
    longer.
    """
    if not _answers(name):
        return False
    time.sleep(_WAY_OUT_SECONDS)
    return _answers(name)


def _answers(name):
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            asking.connect("\0" + name)
            return True
        except OSError:
            return False
