"""Connects to a service whose address the list of hosts does not have, however it is written."""

import socket

from support.attempts import attempt
from support.listed import reach_listed

SPELLINGS = (
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "127.0.0.2",
    "0.0.0.0",
    "0",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "localhost",
    "LOCALHOST.",
)


def attack(target):
    listed = reach_listed(target)

    def talking(host):
        def go():
            with socket.create_connection((host, target["loopback_port"]), timeout=2) as connection:
                received = connection.recv(100).decode()
            return f"it says {received}" if received == target["token"] else None

        return go

    return attempt({host: talking(host) for host in (*SPELLINGS, listed)})
