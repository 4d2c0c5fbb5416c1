"""Puts more on the disk than it may, in room that is kept for files that stay empty."""

import ctypes
import os

from support.taking import size_on_disk, take

_KEEP_SIZE = 1
_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]


def attack(target):
    limits = target["limits"]
    names = []

    def add():
        names.append(f"output/attack-{len(names)}")
        descriptor = os.open(names[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            if _libc.fallocate(descriptor, _KEEP_SIZE, 0, limits["file_size_bytes"] // 4) < 0:
                raise OSError(ctypes.get_errno(), "fallocate")
            return size_on_disk(descriptor)
        finally:
            os.close(descriptor)

    try:
        return take(limits["disk_bytes"], "bytes", add)
    finally:
        for name in names:
            os.unlink(name)
