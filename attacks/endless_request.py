"""Writes a request without an end."""

from support.channel import own_channel, pour

# A request may have a third of it.
MOST_BYTES = 3 << 20
PIECE = b"x" * 65_536


def attack(target):
    return pour(own_channel(target), lambda: PIECE, MOST_BYTES)
