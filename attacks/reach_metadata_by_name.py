"""
Connects to a listed name that leads to the address at which clouds hand a machine its credentials,
as a name does whose owner wants them. It asks for nothing: a connection that stays open has reached
it.
"""

import socket

from support.attempts import attempt
from support.listed import listed_address, reach_listed


def attack(target):
    reach_listed(target)
    name = target["metadata_name"]

    def connecting():
        with socket.create_connection((listed_address(name), 80), timeout=2) as connection:
            try:
                received = connection.recv(100)
            except socket.timeout:
                return "the connection stays open"
        return f"it says {received.decode()}" if received else None

    return attempt({name: connecting})
