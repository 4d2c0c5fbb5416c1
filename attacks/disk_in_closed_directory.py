"""Puts more into its work directory than it may add, in a directory that nobody may look into."""

import os

from support.taking import fill, take


def attack(target):
    limits = target["limits"]
    os.mkdir("closed")
    directory = os.open("closed", os.O_RDONLY)
    names = []

    def add():
        # Open for as long as it takes.
        os.chmod("closed", 0o700)
        names.append(f"attack-{len(names)}")
        descriptor = os.open(names[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=directory)
        os.chmod("closed", 0)
        try:
            return fill(descriptor, limits["file_size_bytes"] // 4)
        finally:
            os.close(descriptor)

    try:
        return take(limits["disk_bytes"], "bytes", add)
    finally:
        os.chmod("closed", 0o700)
        for name in names:
            os.unlink(name, dir_fd=directory)
