"""Whether a process may be forked: checked, not assumed."""

import os
import signal
import time

from .descriptors import open_descriptors

# For threads that have been joined and are about to go.
_MAX_CHECKS = 20
_CHECK_SECONDS = 0.005


def why_not_to_fork(own_descriptors: "set[int]", places: "dict[str, set[str]]") -> "str | None":
    """What children would share or lack, or None. To be called before the first fork.

    `places` are directories that children have anew, with the names that are always in them.
    """
    return (
        _threads()
        or _timers()
        or _processes()
        or _descriptors(own_descriptors)
        or _shared_memory()
        or next(filter(None, map(_files, places.items())), None)
    )


def _threads() -> "str | None":
    for _ in range(_MAX_CHECKS):
        count = len(os.listdir("/proc/self/task"))
        if count == 1:
            return None
        time.sleep(_CHECK_SECONDS)
    return f"it has {count} threads"


def _timers() -> "str | None":
    """Children have none (fork(2))."""
    kinds = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
    return "it has set a timer" if any(signal.getitimer(kind)[0] for kind in kinds) else None


def _processes() -> "str | None":
    """The sandbox has its first process and this one."""
    others = [name for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, os.getpid())]
    return f"it has started {len(others)} processes that still run" if others else None


def _descriptors(own: "set[int]") -> "str | None":
    """Children would share offsets, locks and what arrives at sockets."""
    named = [target for number, target in open_descriptors().items() if number not in own]
    return f"it has left {', '.join(sorted(named)[:3])} open" if named else None


def _shared_memory() -> "str | None":
    """Shared mappings that are writable or may be made so (proc_pid_smaps(5))."""
    name = "memory"
    with open("/proc/self/smaps", "rb") as lines:
        for line in lines:
            word, _, rest = line.partition(b" ")
            if not word.endswith(b":"):
                fields = rest.split(None, 4)
                name = fields[4].strip().decode("utf-8", "replace") if len(fields) > 4 else "memory"
            elif word == b"VmFlags:" and {b"sh", b"mw"} <= set(rest.split()):
                return f"it shares {name} for writing"
    return None


def _files(place: "tuple[str, set[str]]") -> "str | None":
    directory, expected = place
    left = sorted(set(os.listdir(directory)) - expected)
    return f"it has left {directory}/{left[0]}" if left else None
