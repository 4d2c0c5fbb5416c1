"""
Puts more into its work directory than it may add, below more directories than a path has room for.
"""

import os

from support.taking import take_in_files

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
    return take_in_files(limits["disk_bytes"], limits["file_size_bytes"] // 4, "attack-{}".format, directory)
