"""Puts more on the disk than it may, in files without a name that are mapped and not open."""

import ctypes
import mmap
import os

from support.taking import fill, take

PIECE_BYTES = 2 << 20

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_FAILED = ctypes.c_void_p(-1).value


def attack(target):
    def add():
        descriptor = os.open("attack", os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            os.unlink("attack")
            taken = fill(descriptor, PIECE_BYTES)
            # Not by Python's mmap, which keeps a descriptor. One page keeps the whole file.
            kept = _libc.mmap(None, mmap.PAGESIZE, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        finally:
            os.close(descriptor)
        if kept == _FAILED:
            raise OSError(ctypes.get_errno(), "mmap")
        return taken

    return take(target["limits"]["disk_bytes"], "bytes", add)
