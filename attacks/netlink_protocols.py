"""
Opens netlink sockets to the kernel's subsystems, but for the one that tells addresses and routes.
"""

import socket

from support.attempts import answer

_ROUTE = 0
_PROTOCOLS = range(32)


def attack(target):
    opened = []
    for protocol in _PROTOCOLS:
        if protocol == _ROUTE:
            continue
        try:
            socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol).close()
            opened.append(f"protocol {protocol}")
        except OSError:
            pass
    return answer(opened, ["none but protocol 0"])
