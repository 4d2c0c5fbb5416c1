"""
Keeps the proxy waiting for the end of a request's headers: with silence, and with a byte now and
then.
"""

import select
import socket
import time

from support.attempts import answer
from support.proxied import PROXY, reach_by_proxy

# How many times the bound.
EXCESS = 2
PAUSE_SECONDS = 0.25


def attack(target):
    reach_by_proxy(target)
    seconds = EXCESS * target["header_seconds"]
    start = b"GET http://"
    silent, slow = (socket.create_connection(PROXY, timeout=2) for _ in range(2))
    with silent, slow:
        silent.sendall(start)
        slow.sendall(start)
        waiting = {silent: "silence", slow: "a byte now and then"}
        until = time.monotonic() + seconds
        while waiting and time.monotonic() < until:
            for ended in select.select(list(waiting), [], [], PAUSE_SECONDS)[0]:
                del waiting[ended]
            if slow in waiting:
                try:
                    slow.sendall(b"x")
                except OSError:
                    del waiting[slow]
    # The worker still serves.
    reach_by_proxy(target)
    bound = f"{target['header_seconds']} s are allowed"
    return answer(
        [f"{way}: it waits for {seconds} s, {bound}" for way in waiting.values()],
        [f"it ends both within {seconds} s, {bound}"],
    )
