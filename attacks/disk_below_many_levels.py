"""Puts more into its work directory than it may add, below more directories than a path has room for."""

import os

from support.taking import fill, take

LEVELS = 300
NAME = "level-with-a-long-name"


def attack(target):
    limits = target["limits"]
    directory = os.open(".", os.O_RDONLY)
    for _level in range(LEVELS):
        os.mkdir(NAME, dir_fd=directory)
        inner = os.open(NAME, os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = inner
    names = []

    def add():
        names.append(f"attack-{len(names)}")
        descriptor = os.open(names[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=directory)
        try:
            return fill(descriptor, limits["file_size_bytes"] // 4)
        finally:
            os.close(descriptor)

    try:
        return take(limits["disk_bytes"], "bytes", add)
    finally:
        for name in names:
            os.unlink(name, dir_fd=directory)
