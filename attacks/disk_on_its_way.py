"""
Puts more on the disk than it may, in files without a name whose descriptors are on their way over a
socket.
"""

import array
import os
import socket

from support.taking import fill, take


def attack(target):
    limits = target["limits"]
    sending, receiving = socket.socketpair()

    def add():
        descriptor = os.open("attack", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            os.unlink("attack")
            taken = fill(descriptor, limits["file_size_bytes"] // 4)
            passed = array.array("i", [descriptor])
            sending.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)])
            return taken
        finally:
            os.close(descriptor)

    try:
        return take(limits["disk_bytes"], "bytes", add)
    finally:
        sending.close()
        receiving.close()
