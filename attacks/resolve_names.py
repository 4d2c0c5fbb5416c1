"""
Asks the host's name servers, through which a secret could leave, for a name that does not exist
anywhere.
"""

import secrets
import socket

from support.attempts import attempt

# Inside of a sandbox with a list of hosts, the worker answers here, and asks nobody.
OWN_SERVER = "127.0.0.1"


def attack(target):
    number = secrets.token_bytes(2)
    labels = ("str-attack", "invalid")
    name = b"".join(bytes([len(label)]) + label.encode() for label in labels) + b"\0"
    # RFC 1035, section 4: one question, for an address.
    query = number + b"\x01\x00\x00\x01\0\0\0\0\0\0" + name + b"\0\x01\0\x01"

    def asking(server):
        def go():
            family = socket.AF_INET6 if ":" in server else socket.AF_INET
            with socket.socket(family, socket.SOCK_DGRAM) as datagrams:
                datagrams.settimeout(1)
                datagrams.connect((server, 53))
                datagrams.send(query)
                answer = datagrams.recv(512)
            return f"answered with {len(answer)} bytes" if answer[:2] == number else None

        return go

    servers = dict.fromkeys([*target["name_servers"][:3], "127.0.0.53"])
    if has_own_loopback():
        servers.pop(OWN_SERVER, None)
    return attempt({server: asking(server) for server in servers})


def has_own_loopback():
    """Whether nothing leads out, so that this loopback address is not the host's."""
    return [name for _, name in socket.if_nameindex()] == ["lo"]
