"""
Changes how the host's network is set up: asks for what is there already, so that nothing changes.
"""

import fcntl
import os
import socket
import struct

from support.attempts import attempt

# netdevice(7), rtnetlink(7)
GET_FLAGS, SET_FLAGS = 0x8913, 0x8914
NEW_LINK, REQUEST_ACK = 16, 0x0005


def attack(target):
    def by_ioctl():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            request = struct.pack("16sh14x", b"lo", 0)
            present = fcntl.ioctl(any_socket, GET_FLAGS, request)
            fcntl.ioctl(any_socket, SET_FLAGS, present)
        return "the flags of lo were set to what they are"

    def by_netlink():
        message = struct.pack("BxHiII", socket.AF_UNSPEC, 0, socket.if_nametoindex("lo"), 0, 0)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
            netlink.settimeout(2)
            netlink.send(struct.pack("IHHII", 16 + len(message), NEW_LINK, REQUEST_ACK, 1, 0) + message)
            error = -struct.unpack_from("i", netlink.recv(4096), 16)[0]
        if error:
            raise OSError(error, os.strerror(error))
        return "lo was told to be as it is"

    return attempt({"ioctl": by_ioctl, "netlink": by_netlink})
