"""Talks to a Unix socket of the host that has a name and no file."""

import socket

from support.attempts import attempt


def attack(target):
    def talking():
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(2)
            connection.connect("\0" + target["abstract_socket"])
            said = connection.recv(100).decode()
        return f"it says {said}" if said == target["token"] else None

    return attempt({"connect": talking})
