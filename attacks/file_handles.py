"""
Opens files by their handles, which lead past the mounts to everything on the same file system.
"""

import ctypes
import os
import struct

from support.attempts import attempt
from support.kernel import call

_AT_FDCWD = -100
_MOST_BYTES = 128


def attack(target):
    return attempt({"name_to_handle_at": _handle, "open_by_handle_at": _opened})


def _made():
    # struct file_handle: size, kind, and the handle itself.
    handle = ctypes.create_string_buffer(struct.pack("Ii", _MOST_BYTES, 0), 8 + _MOST_BYTES)
    mount = ctypes.c_int()
    call("name_to_handle_at", _AT_FDCWD, b".", handle, ctypes.byref(mount), 0)
    return handle


def _handle():
    handle = _made()
    size, kind = struct.unpack_from("Ii", handle)
    return f"kind {kind}, {handle.raw[8 : 8 + size].hex()}"


def _opened():
    handle = _made()
    place = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        descriptor = call("open_by_handle_at", place, handle, os.O_RDONLY | os.O_DIRECTORY)
    finally:
        os.close(place)
    inode = os.fstat(descriptor).st_ino
    os.close(descriptor)
    return f"inode {inode}"
