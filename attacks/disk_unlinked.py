"""Puts more on the disk than it may, in open files that have no name any more."""

import os

from support.taking import fill, take


def attack(target):
    limits = target["limits"]
    descriptors = []

    def add():
        descriptors.append(os.open("attack", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        os.unlink("attack")
        return fill(descriptors[-1], limits["file_size_bytes"] // 4)

    return take(limits["disk_bytes"], "bytes", add)
