"""A server that echoes, takes and gives, outside of sandboxes.

It prints its port, and ends with its stdin. A client sends orders of 17 bytes: what to do, an
amount, and bytes a second (0: as fast as it goes).
T: echo as many single bytes. U: take as many bytes, then answer with one. D: give as many bytes.
"""

import socket
import struct
import sys
import threading
import time

ORDER = struct.Struct("!cQQ")
CHUNK = bytes(256 * 1024)


def main() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    print(server.getsockname()[1], flush=True)
    threading.Thread(target=accept, args=(server,), daemon=True).start()
    sys.stdin.read()


def accept(server: socket.socket) -> None:
    while True:
        connection, _ = server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


def serve(connection: socket.socket) -> None:
    while order := connection.recv(ORDER.size, socket.MSG_WAITALL):
        what, amount, rate = ORDER.unpack(order)
        if what == b"T":
            for _ in range(amount):
                connection.sendall(connection.recv(1))
        elif what == b"U":
            take(connection, amount)
            connection.sendall(b".")
        else:
            give(connection, amount, rate)


def take(connection: socket.socket, amount: int) -> None:
    buffer = bytearray(len(CHUNK))
    while amount > 0:
        amount -= connection.recv_into(buffer, min(amount, len(buffer)))


def give(connection: socket.socket, amount: int, rate: int) -> None:
    start = time.perf_counter()
    for given in range(0, amount, len(CHUNK)):
        if rate > 0:
            time.sleep(max(0.0, start + given / rate - time.perf_counter()))
        connection.sendall(CHUNK[: amount - given])


main()
