"""The HTTP proxy that sandboxes with a list of hosts have, for attacks on it."""

import socket

from support.listed import reach_listed

PROXY = ("127.0.0.1", 3128)
HEAD_END = b"\r\n\r\n"
# It answers everything at once, but on a host that is busy with other things.
PATIENCE_SECONDS = 10


class Refused(OSError):
    """The proxy's own answer, in place of a tunnel."""


def reach_by_proxy(target):
    """
    Talks to the listed host by the proxy. Raises where that fails: a proxy that lets nothing through
    would hold every attack.
    """
    reach_listed(target)
    received = tunnel(f"{target['listed_name']}:{target['listed_port']}", target["listed_name"])
    if received != "listed":
        raise RuntimeError(f"by the proxy, the listed host says {received}")


def tunnel(authority, question=""):
    """What comes through a tunnel to a host and port. Raises Refused."""
    with socket.create_connection(PROXY, timeout=PATIENCE_SECONDS) as proxy:
        proxy.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        head = b""
        while HEAD_END not in head:
            try:
                received = proxy.recv(4096)
            except socket.timeout:
                raise Refused("it does not answer") from None
            if not received:
                raise Refused("it ends the connection")
            head += received
        head, _, first = head.partition(HEAD_END)
        if b" 200 " not in head:
            raise Refused(head.split(b" ", 2)[1].decode())
        proxy.sendall(question.encode())
        return (first or proxy.recv(100)).decode(errors="replace")


def say_to_proxy(message, awaited=None):
    """The answer of the proxy, read until the connection ends or has the awaited text."""
    answer = b""
    end = awaited and awaited.encode()
    with socket.create_connection(PROXY, timeout=PATIENCE_SECONDS) as proxy:
        proxy.sendall(message)
        try:
            while not (end and end in answer) and (received := proxy.recv(4096)):
                answer += received
        except OSError:
            # Silence, or an end that lost something: what came before counts.
            pass
    return answer.decode(errors="replace")


def token_in(target, message):
    """Evidence when the proxy's answer to a message has the token."""
    answer = say_to_proxy(message, target["token"])
    if target["token"] in answer:
        return f"it says {target['token']}"
    status = answer.split(" ")[1:2]
    raise Refused(*(status or ["it ends the connection"]))
