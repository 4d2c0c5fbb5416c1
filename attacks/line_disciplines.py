"""
Gives a terminal of its own another line discipline: drivers of old modems and buses, which the
kernel may load.
"""

import ctypes
import os
import pty
import struct

from support.attempts import attempt
from support.kernel import call

_TIOCSETD, _TIOCGETD = 0x5423, 0x5424
_DISCIPLINES = {"N_NULL": 27, "N_SLIP": 1, "N_PPP": 3, "N_HDLC": 13, "N_HCI": 15, "N_GSM0710": 21}


def attack(target):
    return attempt({name: lambda number=number: _set(number) for name, number in _DISCIPLINES.items()})


def _set(number):
    master, slave = pty.openpty()
    try:
        call("ioctl", slave, _TIOCSETD, struct.pack("i", number))
        now = ctypes.c_int()
        call("ioctl", slave, _TIOCGETD, ctypes.byref(now))
        return f"line discipline {now.value}" if now.value == number else None
    finally:
        os.close(slave)
        os.close(master)
