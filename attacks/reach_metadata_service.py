"""
Connects to the address at which clouds hand a machine its credentials. It connects, and asks for
nothing: a service waits for a request, where a network that refuses the address ends the
connection.
"""

import socket

from support.attempts import attempt


def attack(target):
    def connecting(host):
        def go():
            with socket.create_connection((host, 80), timeout=1) as connection:
                try:
                    is_ended = connection.recv(1) == b""
                except socket.timeout:
                    is_ended = False
                return None if is_ended else f"{connection.getpeername()[0]} takes connections"

        return go

    return attempt({host: connecting(host) for host in (target["metadata_address"],)})
