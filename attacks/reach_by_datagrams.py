"""
Leaves without a TCP connection: by UDP to the listed host and port, ICMP, raw packets, and a socket
that has no file.
"""

import socket
from functools import partial

from support.attempts import attempt
from support.listed import evidence, listen_to_abstract, reach_listed


def attack(target):
    listed = reach_listed(target)

    def sending(host, port):
        def go():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
                datagrams.settimeout(0.5)
                datagrams.connect((host, port))
                datagrams.send(b"str-attack")
                return evidence(target, datagrams.recv(100))

        return go

    def opening(family, kind, protocol):
        def go():
            socket.socket(family, kind, protocol).close()
            return "opened"

        return go

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
            "an abstract socket": partial(listen_to_abstract, target, target["abstract_socket"]),
        }
    )
