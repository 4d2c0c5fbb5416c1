"""Talks to a Unix socket of the host that has a name and no file."""

import socket

from support.attempts import attempt


def attack(target):
    def talking():
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(2)
            connection.connect("\0" + target["abstract_socket"])
            received = connection.recv(100).decode()
        return f"it says {received}" if received == target["token"] else None

    return attempt({"connect": talking})
