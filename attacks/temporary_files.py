"""Puts more into private memory than fits there."""

import os

from support.attempts import answer
from support.taking import fill, take

PIECE_BYTES = 1 << 20


def attack(target):
    reached, held = [], []
    for directory in ("/tmp", "/dev/shm", "/var"):
        if not os.access(directory, os.W_OK):
            continue
        said = fill_directory(directory, target["limits"]["tmp_bytes"])
        (reached if said["reached"] else held).append(f"{directory}: {said['evidence']}")
    return answer(reached, held)


def fill_directory(directory, bound):
    names = []

    def add():
        name = f"{directory}/attack-{len(names)}"
        names.append(name)
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            return fill(descriptor, PIECE_BYTES)
        finally:
            os.close(descriptor)

    try:
        return take(bound, "bytes", add)
    finally:
        for name in names:
            os.unlink(name)
