"""Puts more into its work directory than it may add, in files that are each small enough."""

import os

from support.taking import fill, take


def attack(target):
    limits = target["limits"]
    names = []

    def add():
        name = f"{('output', 'input', '.')[len(names) % 3]}/attack-{len(names)}"
        names.append(name)
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            return fill(descriptor, limits["file_size_bytes"] // 4)
        finally:
            os.close(descriptor)

    try:
        return take(limits["disk_bytes"], "bytes", add)
    finally:
        for name in names:
            os.unlink(name)
