"""
Holds more memory than there may be, in processes whose first thread has ended, so that their own
entries show none.
"""

import ctypes
import os
import threading

from support.taking import take_in_processes

EXIT_THREAD = {"x86_64": 60, "aarch64": 93}[os.uname().machine]


def attack(target):
    return take_in_processes(target["limits"]["memory_bytes"], hold)


def hold(part, stay):
    def hold_in_thread():
        piece = b"x" * part
        stay(len(piece))

    threading.Thread(target=hold_in_thread).start()
    ctypes.CDLL(None).syscall(EXIT_THREAD, 0)
