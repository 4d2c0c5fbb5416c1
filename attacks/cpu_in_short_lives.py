"""
Takes more processor time than there may be, in processes that end soon and that no parent is
charged for.
"""

import os
import signal
import struct

from support.burning import answer, burn

LIFE_SECONDS = 0.018


def attack(target):
    bound = target["limits"]["cpu_seconds"]
    # times(2): children of a parent that ignores their end are counted nowhere.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    reading, writing = os.pipe()
    used = 0.0
    while used < 1.1 * bound:
        if os.fork() == 0:
            os.write(writing, struct.pack("d", burn(LIFE_SECONDS)))
            os._exit(0)
        used += struct.unpack("d", os.read(reading, 8))[0]
    return answer(used, bound)
