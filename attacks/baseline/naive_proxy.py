"""
The HTTP proxy of a careless worker in a sandbox: it connects to every target, passes on all bytes,
and has no time limit.
"""

import socket
import threading

HEAD_END = b"\r\n\r\n"


def serve(listening):
    """Serves connections for ever."""
    while True:
        client = listening.accept()[0]
        threading.Thread(target=pass_on, args=(client,), daemon=True).start()


def pass_on(client):
    with client:
        received = b""
        has_ended = False
        while not has_ended:
            more = client.recv(65_536)
            if not more:
                return
            # The rest was looked at before.
            latest = received[1 - len(HEAD_END) :] + more
            has_ended = HEAD_END in latest or b"\n\n" in latest
            received += more
        method, target = received.split(b" ", 2)[:2]
        with socket.create_connection(place_of(target.decode(), received.decode("latin1"))) as host:
            if method == b"CONNECT":
                client.sendall(b"HTTP/1.1 200 OK" + HEAD_END)
                received = received.partition(HEAD_END)[2]
            host.sendall(received)
            threading.Thread(target=copy, args=(client, host), daemon=True).start()
            copy(host, client)


def place_of(target, request):
    """Where a target leads: an address in any spelling, or this system for every name."""
    if target.startswith("/"):
        authority = request.partition("Host: ")[2].split("\r\n")[0]
    else:
        authority = target.split("/")[2] if "://" in target else target
    host, port = authority.rpartition("@")[2].rsplit(":", 1)
    try:
        return socket.inet_ntoa(socket.inet_aton(host)), int(port)
    except OSError:
        return "127.0.0.1", int(port)


def copy(source, sink):
    try:
        while received := source.recv(65_536):
            sink.sendall(received)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass
