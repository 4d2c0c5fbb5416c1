"""Sends the proxy headers without an end: one that is long, and many that are short."""

import socket
from concurrent.futures import ThreadPoolExecutor

from support.attempts import attempt
from support.proxied import PATIENCE_SECONDS, PROXY, Refused, reach_by_proxy

# The worker allows 32 KiB.
TOTAL_BYTES = 1024 * 1024
PIECE_BYTES = 64 * 1024
# For the refusal, once all is sent.
WAIT_SECONDS = 3


def attack(target):
    reach_by_proxy(target)
    start = f"GET http://{target['listed_name']}:{target['listed_port']}/ HTTP/1.1\r\n".encode()

    def sending(piece):
        def go():
            with socket.create_connection(PROXY, timeout=PATIENCE_SECONDS) as proxy:
                proxy.sendall(start + b"x")
                for _ in range(TOTAL_BYTES // len(piece)):
                    proxy.sendall(piece)
                proxy.settimeout(WAIT_SECONDS)
                try:
                    received = proxy.recv(100)
                except socket.timeout:
                    return f"it takes {TOTAL_BYTES} bytes, and waits"
            raise Refused(received.decode().split(" ")[1] if received else "the end")

        return go

    pieces = {"one header": b"x" * PIECE_BYTES, "many headers": b"x: y\r\n" * (PIECE_BYTES // 6)}
    with ThreadPoolExecutor() as both:
        running = {name: both.submit(sending(piece)) for name, piece in pieces.items()}
        outcome = attempt({name: each.result for name, each in running.items()})
    # The worker still serves.
    reach_by_proxy(target)
    return outcome
