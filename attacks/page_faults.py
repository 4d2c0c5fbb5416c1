"""Takes over the handling of page faults, with which one holds the kernel where one wants it."""

import fcntl
import os
import struct

from support.attempts import attempt
from support.kernel import call

_USER_MODE_ONLY = 1
_API = 0xAA
_UFFDIO_API = 0xC018AA3F
_USERFAULTFD_IOC_NEW = 0xAA00
_DEVICE = "/dev/userfaultfd"


def attack(target):
    return attempt(
        {
            "userfaultfd": lambda: _greet(call("userfaultfd", os.O_CLOEXEC)),
            "userfaultfd of own mode": lambda: _greet(call("userfaultfd", os.O_CLOEXEC | _USER_MODE_ONLY)),
            _DEVICE: _by_device,
        }
    )


def _by_device():
    device = os.open(_DEVICE, os.O_RDWR)
    try:
        return _greet(call("ioctl", device, _USERFAULTFD_IOC_NEW, os.O_CLOEXEC))
    finally:
        os.close(device)


def _greet(descriptor):
    try:
        received = fcntl.ioctl(descriptor, _UFFDIO_API, struct.pack("3Q", _API, 0, 0))
    finally:
        os.close(descriptor)
    return f"requests {struct.unpack('3Q', received)[2]:x}"
