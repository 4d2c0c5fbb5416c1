"""Holds more memory than there may be, in one process."""

from support.taking import take

PIECE_BYTES = 8 << 20


def attack(target):
    pieces = []

    def grow():
        # Not zeros: pages that nobody wrote to are not there.
        pieces.append(b"x" * PIECE_BYTES)
        return PIECE_BYTES

    return take(target["limits"]["memory_bytes"], "bytes", grow)
