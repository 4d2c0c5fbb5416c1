"""
Looks for devices beyond the harmless ones, and opens those with a file system on them, without
writing.
"""

import fcntl
import os
import stat
import struct

from support.attempts import answer, error_name

_HARMLESS = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"}
_TERMINALS = "/dev/pts"
_BLKGETSIZE64 = 0x80081272


def attack(target):
    found = sorted(_devices())
    reached = [_described(path, mode, number) for path, mode, number in found]
    return answer(reached, ["no device but " + ", ".join(sorted(_HARMLESS))])


def _devices():
    for directory, _, names in os.walk("/dev"):
        if directory == _TERMINALS:
            continue
        for name in names:
            path = os.path.join(directory, name)
            info = os.lstat(path)
            is_device = stat.S_ISCHR(info.st_mode) or stat.S_ISBLK(info.st_mode)
            if is_device and not (directory == "/dev" and name in _HARMLESS):
                yield path, info.st_mode, info.st_rdev


def _described(path, mode, number):
    numbers = f"{path} is device {os.major(number)}:{os.minor(number)}"
    # To open another device may start something: a watchdog, a tape.
    if not stat.S_ISBLK(mode):
        return numbers
    try:
        device = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        return f"{numbers}, which cannot be opened: {error_name(error)}"
    try:
        size = struct.unpack("Q", fcntl.ioctl(device, _BLKGETSIZE64, bytes(8)))[0]
    finally:
        os.close(device)
    return f"{numbers} with {size} bytes, opened"
