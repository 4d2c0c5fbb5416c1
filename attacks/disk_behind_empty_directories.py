"""Puts more into its work directory than it may add, behind as many empty directories as it may have."""

import os

from support.taking import fill, take

LEVELS = 28
# What else there may be: files of the attack, and what the runner makes.
SPARE = 100


def attack(target):
    limits = target["limits"]
    os.mkdir("output/beside")
    below = "output/below" + "/x" * (LEVELS - 2)
    os.makedirs(below)
    decoys = [f"{below}/{number}" for number in range(limits["files"] - LEVELS - SPARE)]
    for decoy in decoys:
        os.mkdir(decoy)
    names = []

    def add():
        names.append(f"output/beside/attack-{len(names)}")
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
        for decoy in decoys:
            os.rmdir(decoy)
        os.removedirs(below)
