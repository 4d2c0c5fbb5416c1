"""
Leaves by what is no TCP connection: UDP to the listed host and port itself, ICMP, raw packets, and
a socket that has no file.
"""

import socket

from support.attempts import attempt
from support.listed import reach_listed


def attack(target):
    listed = reach_listed(target)

    def sending(host, port):
        def go():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
                datagrams.settimeout(0.5)
                datagrams.connect((host, port))
                datagrams.send(b"str-attack")
                received = datagrams.recv(100).decode()
            return f"it says {received}" if received == target["token"] else None

        return go

    def opening(family, kind, protocol):
        def go():
            socket.socket(family, kind, protocol).close()
            return "opened"

        return go

    def talking():
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(2)
            connection.connect("\0" + target["abstract_socket"])
            received = connection.recv(100).decode()
        return f"it says {received}" if received == target["token"] else None

    port = target["datagram_port"]
    return attempt(
        {
            "UDP to the listed name": sending(listed, port),
            "UDP to its address": sending("127.0.0.1", port),
            "UDP to another address": sending("192.0.2.1", port),
            "UDP to port 443": sending(listed, 443),
            "ICMP": opening(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP),
            "raw ICMP": opening(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
            "raw IPv4": opening(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW),
            "raw IPv6": opening(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW),
            "an abstract socket": talking,
        }
    )
