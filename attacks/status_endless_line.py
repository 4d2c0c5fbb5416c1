"""Writes a status without an end."""

import os

from support.leaving import leave

LINE_BYTES = 48 * 1024


def attack(target):
    descriptor = os.open("status.pipe", os.O_WRONLY)
    os.write(descriptor, b'{"status":"' + b"x" * LINE_BYTES + b'"}\n')
    leave()
