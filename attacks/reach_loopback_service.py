"""Talks to a service that listens on the host's loopback addresses only."""

import socket

from support.attempts import attempt


def attack(target):
    def talking(host):
        def go():
            with socket.create_connection((host, target["loopback_port"]), timeout=2) as connection:
                received = connection.recv(100).decode()
            return f"it says {received}" if received == target["token"] else None

        return go

    return attempt({host: talking(host) for host in ("127.0.0.1", "localhost", "::ffff:127.0.0.1", "0.0.0.0")})
