"""
Calls the kernel by its tables for x32 and for 32-bit programs, in which a filter by numbers knows
nothing.
"""

import ctypes
import mmap

from support.attempts import attempt, error_name, in_child
from support.kernel import MACHINE, call_number

_X32_GETPID = 0x4000_0000 + 39
# mov eax, 20 (getpid); int 0x80; ret
_INT80_GETPID = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"


def attack(target):
    if MACHINE != "x86_64":
        return {"reached": False, "evidence": f"{MACHINE} has one table for its programs"}
    return attempt({"x32": in_child(_by_x32), "int 0x80": in_child(_by_interrupt)})


def _by_x32():
    try:
        return f"getpid() = {call_number(_X32_GETPID)}"
    except OSError as error:
        return f"the kernel itself says {error_name(error)}"


def _by_interrupt():
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(_INT80_GETPID)
    getpid = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    return f"getpid() = {getpid()}"
