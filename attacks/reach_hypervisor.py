"""Opens the socket by which a virtual machine talks to its host (vsock(7))."""

import socket

from support.attempts import attempt


def attack(target):
    def opening(kind):
        def go():
            socket.socket(socket.AF_VSOCK, kind).close()
            return "opened"

        return go

    return attempt({"stream": opening(socket.SOCK_STREAM), "datagrams": opening(socket.SOCK_DGRAM)})
