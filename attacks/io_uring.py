"""Makes a ring of io_uring, which does what system calls do without any."""

import ctypes
import os
import struct

from support.attempts import attempt
from support.kernel import call

_ENTRIES = 1


def attack(target):
    return attempt({"io_uring_setup": _ring})


def _ring():
    parameters = ctypes.create_string_buffer(120)
    os.close(call("io_uring_setup", _ENTRIES, parameters))
    submissions, completions = struct.unpack_from("II", parameters)
    return f"a ring of {submissions} submissions and {completions} completions"
