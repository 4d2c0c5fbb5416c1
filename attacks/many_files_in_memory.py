"""Makes more files on tmpfs than it may, of which each takes memory of the kernel."""

import os

from support.taking import take


def attack(target):
    names = []

    def add():
        name = f"{('/tmp', '/dev/shm')[len(names) % 2]}/attack-{len(names)}"
        os.mknod(name)
        names.append(name)
        return 1

    try:
        return take(target["limits"]["files"], "files", add)
    finally:
        for name in names:
            os.unlink(name)
