"""Namespaces by what /proc calls them: see namespaces(7)."""

import os

# With the flags that ask for a new one.
KINDS = {
    "user": 0x1000_0000,
    "mnt": 0x0002_0000,
    "pid": 0x2000_0000,
    "net": 0x4000_0000,
    "ipc": 0x0800_0000,
    "uts": 0x0400_0000,
    "cgroup": 0x0200_0000,
}


def name_of(kind, process="self"):
    """Such as `user:[4026531837]`, where /proc tells."""
    try:
        return os.readlink(f"/proc/{process}/ns/{kind}")
    except OSError:
        return f"{kind}:[?]"


def child_in_new(kind, clone):
    """
    Makes a child by `clone`, which returns as fork does, and tells how its namespace differs from
    this process's.
    """
    before = name_of(kind)
    reading, writing = os.pipe()
    try:
        pid = clone()
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
    if pid == 0:
        os.write(writing, name_of(kind).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as name:
        after = name.read().decode()
    os.waitpid(pid, 0)
    return f"{before} -> {after}"
