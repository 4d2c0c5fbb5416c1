"""Opens a counter of perf, an interface with a long history of holes."""

import os
import struct

from support.attempts import attempt
from support.kernel import call

_SOFTWARE, _TASK_CLOCK = 1, 1
_SIZE = 64
_EXCLUDE_KERNEL_AND_HYPERVISOR = 1 << 5 | 1 << 6


def attack(target):
    return attempt({"the clock of a task": _counter})


def _counter():
    # struct perf_event_attr: kind, size, which, period, what to sample, what to read, flags.
    head = struct.pack("IIQQQQQ", _SOFTWARE, _SIZE, _TASK_CLOCK, 0, 0, 0, _EXCLUDE_KERNEL_AND_HYPERVISOR)
    descriptor = call("perf_event_open", head.ljust(_SIZE, b"\0"), 0, -1, -1, 0)
    try:
        return f"{struct.unpack('Q', os.read(descriptor, 8))[0]} ns"
    finally:
        os.close(descriptor)
