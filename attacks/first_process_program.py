"""
Changes the program that the sandbox's first process runs: a file of the host, on a mount of the
host, which is not read-only. Sets the mode that it has, and opens it without writing.
"""

import errno
import os
import stat

from support.attempts import attempt

_PROGRAM = "/proc/1/exe"


def attack(target):
    return attempt({"chmod": _set_mode, "open": _open})


def _set_mode():
    mode = stat.S_IMODE(os.stat(_PROGRAM).st_mode)
    os.chmod(_PROGRAM, mode)
    return f"set the mode of {os.readlink(_PROGRAM)} to {mode:o}"


def _open():
    try:
        os.close(os.open(_PROGRAM, os.O_WRONLY))
    except OSError as error:
        # What keeps it is only that it runs.
        if error.errno != errno.ETXTBSY:
            raise
    return f"{os.readlink(_PROGRAM)} may be written"
