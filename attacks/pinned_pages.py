"""
Keeps memory that is on nobody's account: pages in a pipe, after they were unmapped or their file
was truncated.
"""

import mmap
import os
import struct
import ctypes

from support.attempts import attempt
from support.kernel import call

_PAGE = 4096
_GIFT_NO_WAIT = 2


def attack(target):
    return attempt(
        {
            "vmsplice": _of_memory,
            "splice": lambda: _of_file(lambda file, pipe: call("splice", file, None, pipe, None, 1, 0)),
            "sendfile": lambda: _of_file(lambda file, pipe: call("sendfile", pipe, file, None, 1)),
            "tee": _twice,
        }
    )


def _of_memory():
    with _Pipe() as pipe:
        memory = mmap.mmap(-1, _PAGE)
        memory[:4] = b"page"
        start = ctypes.c_char.from_buffer(memory)
        piece = struct.pack("QQ", ctypes.addressof(start), 4)
        call("vmsplice", pipe.writing, piece, 1, _GIFT_NO_WAIT)
        del start
        memory.close()
        return f"{pipe.read()!r} was in memory that is no longer mapped"


def _of_file(put):
    path = "output/file"
    with open(path, "w+b", buffering=0) as file, _Pipe() as pipe:
        os.unlink(path)
        file.write(b"page")
        file.seek(0)
        put(file.fileno(), pipe.writing)
        file.truncate(0)
        return f"{pipe.read()!r} was in a file that is empty now"


def _twice():
    with _Pipe() as one, _Pipe() as other:
        os.write(one.writing, b"page")
        call("tee", one.reading, other.writing, 4, 0)
        return f"{one.read()!r} and {other.read()!r} share a page"


class _Pipe:
    def __enter__(self):
        self.reading, self.writing = os.pipe()
        return self

    def read(self):
        return os.read(self.reading, _PAGE)

    def __exit__(self, *_):
        os.close(self.reading)
        os.close(self.writing)
