"""
Puts more into its work directory than it may add, behind as many empty directories as it may have.
"""

import os

from support.taking import take_in_files

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
    try:
        return take_in_files(limits["disk_bytes"], limits["file_size_bytes"] // 8, "output/beside/attack-{}".format)
    finally:
        for decoy in decoys:
            os.rmdir(decoy)
        os.removedirs(below)
