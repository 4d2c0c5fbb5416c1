"""
Holds more memory than there may be, in mappings of processes that never touched them: parents have,
which ended.
"""

import mmap
import os

from support.taking import take_in_processes


def attack(target):
    return take_in_processes(target["limits"]["memory_bytes"], hold)


def hold(part, stay):
    shared = mmap.mmap(-1, part)
    shared.write(b"x" * part)
    # A child has the mapping and, until it touches them, none of its pages.
    if os.fork() == 0:
        stay(part)
