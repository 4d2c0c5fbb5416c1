"""
Makes device files of its own, for the host's disks and memory, and opens them without writing.
"""

import os
import stat

from support.attempts import attempt

_MEMORY = (stat.S_IFCHR, 1, 1)
_DISKS = [(stat.S_IFBLK, major, minor) for major, minor in ((8, 0), (253, 0), (254, 0), (259, 0), (7, 0))]
_DIRECTORIES = (".", "/tmp", "/dev", "/dev/shm", "/var/tmp")


def attack(target):
    return attempt(
        {
            f"{major}:{minor} in {directory}": lambda d=directory, k=kind, a=major, i=minor: _make(d, k, a, i)
            for directory in _DIRECTORIES
            if os.path.isdir(directory)
            for kind, major, minor in (_MEMORY, *_DISKS)
        }
    )


def _make(directory, kind, major, minor):
    path = os.path.join(directory, f"attack-{major}-{minor}")
    os.mknod(path, kind | 0o600, os.makedev(major, minor))
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    finally:
        os.unlink(path)
    return "made and opened"
