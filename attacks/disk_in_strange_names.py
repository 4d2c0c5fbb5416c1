"""
Puts more into its work directory than it may add, in files and directories whose names are no text.
"""

import os

from support.taking import take_in_files

# No UTF-8: an end without a beginning, a beginning without an end, and what stands for neither
# anywhere.
STRANGE = (b"\x80", b"\xe2\x82", b"\xff")


def attack(target):
    limits = target["limits"]
    directories = [b"output", *(b"output/" + name for name in STRANGE)]
    for directory in directories[1:]:
        os.mkdir(directory)

    def path_of(number):
        name = STRANGE[number % len(STRANGE)] + b"%d" % number
        return directories[number % len(directories)] + b"/" + name

    try:
        return take_in_files(limits["disk_bytes"], limits["file_size_bytes"] // 8, path_of)
    finally:
        for directory in directories[1:]:
            os.rmdir(directory)
