"""Puts more on the disk than it may, in room that is kept for files that stay empty."""

import ctypes
import os

from support.taking import size_on_disk, take_in_files

_KEEP_SIZE = 1
_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]


def attack(target):
    limits = target["limits"]
    size = limits["file_size_bytes"] // 4
    return take_in_files(limits["disk_bytes"], size, "output/attack-{}".format, put=keep_room)


def keep_room(descriptor, size):
    if _libc.fallocate(descriptor, _KEEP_SIZE, 0, size) < 0:
        raise OSError(ctypes.get_errno(), "fallocate")
    return size_on_disk(descriptor)
