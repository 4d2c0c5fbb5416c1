"""Reads the kernel's log, its addresses and its memory."""

import ctypes
import os
import struct

from support.attempts import attempt
from support.kernel import call

_READ_ALL = 3
_PRESENT = 1 << 63
_FRAME = (1 << 55) - 1


def attack(target):
    return attempt(
        {
            "syslog": _log,
            "/dev/kmsg": lambda: _read("/dev/kmsg"),
            "/proc/kallsyms": _addresses,
            "/proc/self/pagemap": _frames,
            "/proc/kcore": lambda: _open("/proc/kcore"),
            "/proc/kmsg": lambda: _open("/proc/kmsg"),
            "/dev/mem": lambda: _open("/dev/mem"),
            "/sys/kernel/notes": lambda: _read("/sys/kernel/notes"),
        }
    )


def _log():
    buffer = ctypes.create_string_buffer(4096)
    return f"{call('syslog', _READ_ALL, buffer, len(buffer))} bytes of log"


def _read(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return f"{len(os.read(descriptor, 4096))} bytes"
    finally:
        os.close(descriptor)


def _open(path):
    """Without reading: what one reader of the kernel's log takes, others miss."""
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    return "opened"


def _addresses():
    with open("/proc/kallsyms") as symbols:
        for line in symbols:
            address, _, name = line.split()[:3]
            if int(address, 16) != 0:
                return f"{name} is at {address}"
    return None


def _frames():
    """The physical place of a page of its own."""
    page = os.sysconf("SC_PAGESIZE")
    own = bytearray(page)
    with open("/proc/self/pagemap", "rb", buffering=0) as pages:
        pages.seek(id(own) // page * 8)
        entry = struct.unpack("Q", pages.read(8))[0]
    frame = entry & _FRAME
    return f"frame {frame:x}" if entry & _PRESENT and frame else None
