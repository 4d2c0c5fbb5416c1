"""Prints more than anybody wants to read."""

import os

from support.leaving import leave

BYTES = 64 << 20


def attack(target):
    piece = b"x" * (1 << 16)
    for _piece in range(BYTES // len(piece)):
        os.write(1, piece)
    leave()
