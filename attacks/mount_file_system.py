"""Mounts: a new file system, a directory once more, and the kernel's own file systems."""

import os
import tempfile

from support.attempts import attempt
from support.kernel import call

_BIND = 4096
_DETACH = 2


def attack(target):
    place = tempfile.mkdtemp(dir=".")
    kinds = ("tmpfs", "proc", "sysfs", "cgroup2", "mqueue", "overlay", "ramfs", "fuse")
    try:
        return attempt(
            {
                "a directory once more": lambda: _mount(place, b"/usr", None, _BIND),
                **{kind: lambda kind=kind: _mount(place, b"none", kind.encode(), 0) for kind in kinds},
            }
        )
    finally:
        os.rmdir(place)


def _mount(place, source, kind, flags):
    before = os.stat(place)
    call("mount", source, place.encode(), kind, flags, None)
    after = os.stat(place)
    call("umount2", place.encode(), _DETACH)
    if (before.st_dev, before.st_ino) == (after.st_dev, after.st_ino):
        return None
    return f"device {os.major(after.st_dev)}:{os.minor(after.st_dev)} was mounted"
