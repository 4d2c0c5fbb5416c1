"""Has more files open than a process may."""

import os

from support.taking import take


def attack(target):
    descriptors = []

    def open_one():
        descriptors.append(os.open("/dev/null", os.O_RDONLY))
        return 1

    try:
        return take(target["limits"]["open_files"], "files", open_one)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
