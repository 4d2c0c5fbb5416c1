"""
What the list of hosts lets a tool reach, and what others listen on, for attacks on such a list.
"""

import socket
from contextlib import ExitStack, suppress

NAME_SERVICE = ("127.0.0.1", 53)


def listed_address(listed_name):
    """
    Where name service leads for a listed name; 127.0.0.1 where it does not know it, as in a
    baseline.
    """
    labels = listed_name.split(".")
    name = b"".join(bytes([len(label)]) + label.encode() for label in labels) + b"\0"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.settimeout(5)
        datagrams.sendto(b"\0\7\1\0\0\1\0\0\0\0\0\0" + name + b"\0\1\0\1", NAME_SERVICE)
        answer = datagrams.recv(512)
    # RFC 1035, section 4.1: the number of answers; the address ends the only one.
    answers = int.from_bytes(answer[6:8], "big")
    return socket.inet_ntoa(answer[-4:]) if answers == 1 else "127.0.0.1"


def reach_listed(target):
    """
    Talks to the listed host and returns its address. Raises where that fails: a sandbox that reaches
    nothing at all would hold every attack.
    """
    address = listed_address(target["listed_name"])
    received = ask(address, target["listed_port"], target["listed_name"].encode())
    if received != b"listed":
        raise RuntimeError(f"the listed host says {received}")
    return address


def ask(address, port, question, timeout=5):
    """The answer to some bytes; empty for a connection that ends without."""
    with socket.create_connection((address, port), timeout=timeout) as connection:
        connection.sendall(question)
        return connection.recv(100)


def answered_together(address, port, question, count):
    """How many of some connections that are open at the same time the listed host answers."""
    with ExitStack() as held:
        connections = []
        for _ in range(count):
            with suppress(OSError):
                connection = socket.create_connection((address, port), timeout=5)
                connections.append(held.enter_context(connection))
        for connection in connections:
            with suppress(OSError):
                connection.sendall(question)
        return [is_answered(connection) for connection in connections].count(True)


def is_answered(connection):
    try:
        return connection.recv(100) == b"listed"
    except OSError:
        return False


def listen_to(target, address, port):
    """Evidence when the connection yields the token."""
    return evidence(target, ask(address, port, b"", timeout=2))


def listen_to_abstract(target, name):
    """The same of a Unix socket without a file."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(2)
        connection.connect("\0" + name)
        return evidence(target, connection.recv(100))


def evidence(target, received):
    text = received.decode(errors="replace")
    return f"it says {text}" if text == target["token"] else None


def victim_port(token):
    """Where a call that attacks look for listens on every address."""
    return 20_000 + int(token[:3], 16)


def victim_socket(token):
    """Where the same call listens without a file: the name without its NUL."""
    return f"str-victim-{token}"
