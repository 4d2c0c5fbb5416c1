"""Leaves a process behind that makes an output grow while it is read."""

import os
import time

from support.leaving import leave


def attack(target):
    most = target["limits"]["file_size_bytes"]
    with open("output/report.txt", "wb") as file:
        file.write(b"x")
        file.flush()
        tool = os.getpid()
        if os.fork() > 0:
            leave()
        os.setsid()
        until = time.monotonic() + 8
        while os.getppid() == tool and time.monotonic() < until:
            time.sleep(0.001)
        while file.tell() < most:
            file.write(bytes(1 << 16))
            file.flush()
            time.sleep(0.001)
        os._exit(0)
