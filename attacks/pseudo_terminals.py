"""
Opens a pseudo terminal, of which the host has few: who takes all leaves none for other sandboxes
and containers.
"""

import os

from support.attempts import attempt


def attack(target):
    return attempt({path: lambda path=path: _open(path) for path in ("/dev/ptmx", "/dev/pts/ptmx")})


def _open(path):
    os.close(os.open(path, os.O_RDWR | os.O_NOCTTY))
    return "one of those that the host has"
