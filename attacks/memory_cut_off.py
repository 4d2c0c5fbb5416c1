"""
Holds more memory than there may be, in shared mappings of which all but a page was cut off: the
rest stays.
"""

import ctypes
import mmap

from support.taking import take

PIECE_BYTES = 1 << 20

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_FAILED = ctypes.c_void_p(-1).value
_SHARED = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS


def attack(target):
    def add():
        piece = _libc.mmap(None, PIECE_BYTES, mmap.PROT_READ | mmap.PROT_WRITE, _SHARED, -1, 0)
        if piece == _FAILED:
            raise OSError(ctypes.get_errno(), "mmap")
        ctypes.memset(piece, 1, PIECE_BYTES)
        _libc.munmap(piece + mmap.PAGESIZE, PIECE_BYTES - mmap.PAGESIZE)
        return PIECE_BYTES

    return take(target["limits"]["memory_bytes"], "bytes", add)
