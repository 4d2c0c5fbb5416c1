"""Talks to what a call in another sandbox of the same list listens on."""

import socket

from support.attempts import attempt
from support.listed import ask, reach_listed, victim_port, victim_socket


def attack(target):
    listed = reach_listed(target)
    token = target["token"]

    def evidence(received):
        return f"it says {received}" if received == token else None

    def connecting(host):
        return lambda: evidence(ask(host, victim_port(token), b"", timeout=2).decode())

    def talking():
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(2)
            connection.connect(victim_socket(token))
            return evidence(connection.recv(100).decode())

    ways = {host: connecting(host) for host in ("127.0.0.1", "127.0.0.2", "192.0.2.1", listed)}
    return attempt({**ways, "an abstract socket": talking})
