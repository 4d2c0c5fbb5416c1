"""Writes the processor's local descriptor table, which only old programs need."""

import ctypes
import struct

from support.attempts import attempt, in_child
from support.kernel import MACHINE, call

_READ, _WRITE = 0, 0x11
_ENTRY = 0
_HIGHEST = 0xFFFF
# A 32-bit segment that programs may use.
_FLAGS = 1 << 0 | 1 << 6


def attack(target):
    if MACHINE != "x86_64":
        return {"reached": False, "evidence": f"{MACHINE} has no such table"}
    return attempt({"modify_ldt": in_child(_segment)})


def _segment():
    call("modify_ldt", _WRITE, struct.pack("4I", _ENTRY, 0, _HIGHEST, _FLAGS), 16)
    table = ctypes.create_string_buffer(8)
    size = call("modify_ldt", _READ, table, len(table))
    return f"{size} bytes of table: {table.raw.hex()}"
