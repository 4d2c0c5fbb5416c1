"""
Opens files in a table of descriptors that only one thread has, where who looks at its process does
not see them.
"""

import os
import threading

from support.attempts import answer, error_name
from support.kernel import call

_CLOSE_RANGE_UNSHARE = 2
_NOBODY_HAS = 1 << 20


def attack(target):
    reached, blocked = [], []
    opened, asked = threading.Event(), threading.Event()

    def separate():
        try:
            call("close_range", _NOBODY_HAS, _NOBODY_HAS + 1, _CLOSE_RANGE_UNSHARE)
            own.append(os.open("/dev/null", os.O_RDONLY))
        except OSError as error:
            blocked.append(f"{error_name(error)}: close_range")
        opened.set()
        asked.wait()

    own = []
    thread = threading.Thread(target=separate)
    thread.start()
    opened.wait()
    for descriptor in own:
        if _is_open(descriptor):
            blocked.append("the process has what its thread opened")
        else:
            reached.append(f"descriptor {descriptor} of a thread is none of its process")
    asked.set()
    thread.join()
    return answer(reached, blocked)


def _is_open(descriptor):
    try:
        os.fstat(descriptor)
        return True
    except OSError:
        return False
