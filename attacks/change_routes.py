"""Changes addresses and routes of the network in which the list of hosts is kept."""

import os
import socket
import struct

from support.attempts import attempt
from support.listed import reach_listed

# rtnetlink(7), in numbers of linux/rtnetlink.h.
NEW_ADDRESS, NEW_ROUTE, DELETE_ROUTE = 20, 24, 25
REQUEST_ACK, CREATE = 0x0005, 0x0400
LOCAL_TABLE, BOOT, HOST_SCOPE, LOCAL_KIND = 255, 3, 254, 2
DESTINATION, OUTGOING, LOCAL = 1, 4, 2
# For documentation: RFC 5737.
ADDRESS = socket.inet_aton("192.0.2.77")


def attack(target):
    reach_listed(target)
    interface = socket.if_nametoindex("lo")
    address = struct.pack("BBBBI", socket.AF_INET, 32, 0, 0, interface) + member(LOCAL, ADDRESS)
    way = member(OUTGOING, struct.pack("I", interface))

    def route(prefix, destination=b""):
        head = (socket.AF_INET, prefix, 0, 0, LOCAL_TABLE, BOOT, HOST_SCOPE, LOCAL_KIND, 0)
        return struct.pack("8BI", *head) + destination + way

    def changing(kind, flags, body):
        def go():
            message = struct.pack("IHHII", 16 + len(body), kind, REQUEST_ACK | flags, 1, 0) + body
            with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
                netlink.settimeout(2)
                netlink.send(message)
                error = -struct.unpack_from("i", netlink.recv(4096), 16)[0]
            if error:
                raise OSError(error, os.strerror(error))
            return "it is changed"

        return go

    return attempt(
        {
            "a new address": changing(NEW_ADDRESS, CREATE, address),
            "a new route": changing(NEW_ROUTE, CREATE, route(32, member(DESTINATION, ADDRESS))),
            "no route to the worker": changing(DELETE_ROUTE, 0, route(0)),
        }
    )


def member(kind, value):
    return struct.pack("HH", 4 + len(value), kind) + value
