"""
A tool that does nothing wrong, and has to work: a sandbox in which nothing works would block
every attack.
"""

import os
import random
import subprocess
import tempfile
import threading


def attack(target):
    """Uses devices, tmpfs, threads, processes and files; says what did not work."""
    failures = []

    def need(what, works):
        try:
            if works():
                return
            failures.append(what)
        except OSError as error:
            failures.append(f"{what}: {error.strerror}")

    need("/dev/null", lambda: open("/dev/null", "w").write("x") == 1 and open("/dev/null").read() == "")
    need("/dev/zero", lambda: open("/dev/zero", "rb").read(3) == b"\0\0\0")
    need("/dev/urandom", lambda: len(open("/dev/urandom", "rb").read(8)) == 8)
    need("/dev/full", lambda: os.access("/dev/full", os.W_OK))
    need("random numbers", lambda: random.SystemRandom().random() < 1)
    need("/dev/shm", lambda: keeps("/dev/shm/x"))
    need("/tmp", lambda: keeps(tempfile.mkstemp()[1]))
    need("the work directory", lambda: keeps("notes"))
    need("output", lambda: keeps("output/answer.txt"))
    need("threads", runs_thread)
    need("processes", lambda: subprocess.run(["/bin/sh", "-c", "exit 3"]).returncode == 3)
    need("/sandbox/work", lambda: os.getcwd() == "/sandbox/work")
    if failures:
        return {"reached": True, "evidence": "does not work: " + ", ".join(failures)}
    return {"reached": False, "evidence": "devices, memory, threads, processes and files work"}


def keeps(path):
    with open(path, "w") as file:
        file.write("kept")
    with open(path) as file:
        return file.read() == "kept"


def runs_thread():
    done = []
    thread = threading.Thread(target=lambda: done.append(True))
    thread.start()
    thread.join(5)
    return done == [True]
