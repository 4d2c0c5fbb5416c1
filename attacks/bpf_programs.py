"""Speaks to BPF: makes a map, and has a path looked up, which the kernel does for everybody."""

import ctypes
import errno
import os
import struct

from support.attempts import attempt
from support.kernel import call

_MAP_CREATE, _OBJECT_GET = 0, 7
_ARRAY = 2


def attack(target):
    return attempt({"a map": _map, "a pinned object": lambda: _look_up(target["token"])})


def _map():
    # Kind, sizes of key and value, entries.
    attributes = ctypes.create_string_buffer(struct.pack("4I", _ARRAY, 4, 8, 1), 128)
    descriptor = call("bpf", _MAP_CREATE, attributes, len(attributes))
    os.close(descriptor)
    return f"descriptor {descriptor}"


def _look_up(token):
    path = ctypes.create_string_buffer(f"/no-such-{token}".encode())
    attributes = ctypes.create_string_buffer(struct.pack("QI", ctypes.addressof(path), 0), 16)
    try:
        call("bpf", _OBJECT_GET, attributes, len(attributes))
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
    return "the kernel looked the path up"
