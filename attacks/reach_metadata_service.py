"""
Connects to the address at which clouds hand a machine its credentials. It connects, and asks for
nothing.
"""

import socket

from support.attempts import attempt


def attack(target):
    def connecting(host):
        def go():
            with socket.create_connection((host, 80), timeout=1) as connection:
                return f"{connection.getpeername()[0]} takes connections"

        return go

    return attempt({host: connecting(host) for host in (target["metadata_address"],)})
