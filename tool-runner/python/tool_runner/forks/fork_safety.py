"""Whether a process may be forked: looked at, not assumed."""

import _signal
import os
import time

# Looks at whether threads have gone, and what is between two of them.
_MAX_LOOKS = 20
_LOOK_SECONDS = 0.005


def why_not_to_fork(own_descriptors: "set[int]", places: "dict[str, set[str]]") -> "str | None":
    """
    What a child would share with its siblings or lack, or None. To be called before anything was
    forked.

    `places` are directories that children have anew, with the names that are in each of them
    anyway.
    """
    return (
        _threads()
        or _timers()
        or _processes()
        or _descriptors(own_descriptors)
        or _shared_memory()
        or next((reason for reason in map(_files, places.items()) if reason), None)
    )


def close_inherited(own_descriptors: "set[int]") -> None:
    """Closes what whoever started this process has left open in it."""
    for descriptor, _ in _open_descriptors():
        if descriptor not in own_descriptors:
            os.close(descriptor)


def _threads() -> "str | None":
    """One that was joined is there for a moment more."""
    for _ in range(_MAX_LOOKS):
        count = len(os.listdir("/proc/self/task"))
        if count == 1:
            return None
        time.sleep(_LOOK_SECONDS)
    return f"it has {count} threads"


def _timers() -> "str | None":
    """
    Children have none of them (fork(2)), and what they run would go on in the template, where
    nobody looks any more.
    """
    kinds = (_signal.ITIMER_REAL, _signal.ITIMER_VIRTUAL, _signal.ITIMER_PROF)
    return "it has set a timer" if any(_signal.getitimer(kind)[0] for kind in kinds) else None


def _processes() -> "str | None":
    """The first process of the sandbox and this one: there may be no others."""
    others = [name for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, os.getpid())]
    return f"it has started {len(others)} processes that still run" if others else None


def _descriptors(own: "set[int]") -> "str | None":
    """Children would share offsets, locks and what comes through sockets."""
    named = [target for descriptor, target in _open_descriptors() if descriptor not in own]
    return f"it has left {', '.join(sorted(named)[:3])} open" if named else None


def _open_descriptors() -> "list[tuple[int, str]]":
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append((int(name), os.readlink(f"/proc/self/fd/{name}")))
        except FileNotFoundError:
            pass  # The descriptor that the list was read by.
    return found


def _shared_memory() -> "str | None":
    """
    Mappings that are shared and may be made writable (proc_pid_smaps(5)): what one child writes,
    all read.
    """
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
