"""
Connects to the address at which clouds hand a machine its credentials, from behind a list of hosts
that has its port. It asks for nothing: a connection that stays open has reached it.
"""

import socket

from support.attempts import attempt
from support.listed import reach_listed


def attack(target):
    reach_listed(target)
    address = target["metadata_address"]
    number = int.from_bytes(socket.inet_aton(address), "big")

    def connecting(host):
        def go():
            with socket.create_connection((host, 80), timeout=2) as connection:
                try:
                    received = connection.recv(100)
                except socket.timeout:
                    return "the connection stays open"
            return f"it says {received.decode()}" if received else None

        return go

    spellings = (address, str(number), hex(number), f"::ffff:{address}", "fd00:ec2::254")
    return attempt({host: connecting(host) for host in spellings})
