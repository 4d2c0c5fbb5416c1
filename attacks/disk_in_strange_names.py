"""Puts more into its work directory than it may add, in files and directories whose names are no text."""

import os

from support.taking import fill, take

# No UTF-8: an end without a beginning, a beginning without an end, and what stands for neither anywhere.
STRANGE = (b"\x80", b"\xe2\x82", b"\xff")


def attack(target):
    limits = target["limits"]
    directories = [b"output", *(b"output/" + name for name in STRANGE)]
    for directory in directories[1:]:
        os.mkdir(directory)
    names = []

    def add():
        count = len(names)
        strange = STRANGE[count % len(STRANGE)]
        names.append(directories[count % len(directories)] + b"/" + strange + b"%d" % count)
        descriptor = os.open(names[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            return fill(descriptor, limits["file_size_bytes"] // 8)
        finally:
            os.close(descriptor)

    try:
        return take(limits["disk_bytes"], "bytes", add)
    finally:
        for name in names:
            os.unlink(name)
        for directory in reversed(directories[1:]):
            os.rmdir(directory)
