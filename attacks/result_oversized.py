"""Leaves a result that takes no room on the disk and is larger than a message may be."""

import os

from support.leaving import RESULT


def attack(target):
    with open(RESULT, "wb") as file:
        file.write(b'{"result": {"text": "')
        file.truncate(target["limits"]["file_size_bytes"])
    os._exit(0)
