"""The client of peer.py, inside a sandbox. Arguments: host and port.

A line of stdin is an order: T, U or D, an amount, bytes a second. It prints how many milliseconds
that took.
"""

import socket
import struct
import sys
import time

connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
chunk = bytearray(256 * 1024)

for line in sys.stdin:
    what, amount, rate = line.split()
    left = int(amount)
    connection.sendall(struct.pack("!cQQ", what.encode(), left, int(rate)))
    start = time.perf_counter()
    if what == "T":
        for _ in range(left):
            connection.sendall(b".")
            connection.recv(1)
    elif what == "U":
        while left > 0:
            if int(rate) > 0:
                time.sleep(max(0.0, start + (int(amount) - left) / int(rate) - time.perf_counter()))
            left -= connection.send(memoryview(chunk)[:left])
        connection.recv(1)
    else:
        while left > 0:
            left -= connection.recv_into(chunk, min(left, len(chunk)))
    print((time.perf_counter() - start) * 1000, flush=True)
