"""Types into a terminal: the worker's, if it has got it, and one of its own."""

import ctypes
import fcntl
import os
import pty
import select
import termios

from support.attempts import attempt, in_child
from support.kernel import call

_TIOCSTI = 0x5412


def attack(target):
    return attempt({"the worker's terminal": _inherited, "its own": in_child(_own)})


def _inherited():
    """Only opens it: what is typed there would be done."""
    os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    return "it has a controlling terminal"


def _own():
    master, slave = pty.openpty()
    settings = termios.tcgetattr(slave)
    settings[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    call("ioctl", slave, _TIOCSTI, ctypes.create_string_buffer(b"x", 1))
    if not select.select([slave], [], [], 1)[0]:
        return None
    return f"it read {os.read(slave, 1)!r}, which nobody had typed"
