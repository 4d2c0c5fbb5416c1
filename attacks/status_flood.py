"""Writes more statuses than there may be, as fast as it can."""

import os

from support.taking import take

LINE = b'{"status":"x"}\n'
LINES_AT_ONCE = 256


def attack(target):
    descriptor = os.open("status.pipe", os.O_WRONLY)
    try:
        return take(target["limits"]["status_bytes"], "bytes", lambda: os.write(descriptor, LINE * LINES_AT_ONCE))
    finally:
        os.close(descriptor)
