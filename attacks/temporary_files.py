"""Puts more on tmpfs than fits there."""

import os

from support.attempts import answer
from support.taking import take_in_files

PIECE_BYTES = 1 << 20


def attack(target):
    reached, blocked = [], []
    for directory in ("/tmp", "/dev/shm", "/var"):
        if not os.access(directory, os.W_OK):
            continue
        taken = take_in_files(target["limits"]["tmp_bytes"], PIECE_BYTES, (directory + "/attack-{}").format)
        (reached if taken["reached"] else blocked).append(f"{directory}: {taken['evidence']}")
    return answer(reached, blocked)
