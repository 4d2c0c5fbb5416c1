"""Asks without an end, and reads no answer."""

import itertools
import json

from support.channel import own_channel, pour

# More than buffers hold.
MOST_BYTES = 3 << 20


def attack(target):
    numbers = itertools.count()

    def request():
        payload = {"query": "x" * 256, "limit": 50}
        return json.dumps({"type": "search_tools", "id": str(next(numbers)), "payload": payload}).encode() + b"\n"

    return pour(own_channel(target), request, MOST_BYTES)
