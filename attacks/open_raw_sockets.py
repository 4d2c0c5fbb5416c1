"""Opens sockets that see or forge the host's packets."""

import socket

from support.attempts import attempt

# ETH_P_ALL in the order of the network, see packet(7).
ETHERNET = 0x0300


def attack(target):
    def opening(family, kind, protocol):
        def go():
            socket.socket(family, kind, protocol).close()
            return "opened"

        return go

    return attempt(
        {
            "packets": opening(socket.AF_PACKET, socket.SOCK_RAW, ETHERNET),
            "packets without headers": opening(socket.AF_PACKET, socket.SOCK_DGRAM, ETHERNET),
            "raw IPv4": opening(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW),
            "raw ICMP": opening(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
            "raw IPv6": opening(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW),
        }
    )
