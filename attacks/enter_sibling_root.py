"""Goes through another process to what it sees: its root, its working directory, its open files."""

import os

from support.attempts import attempt


def attack(target):
    token, secret = target["token"], target["secret_file"]

    def through(place):
        def go():
            with open(f"{place}{secret}") as file:
                return f"{secret} holds {token}" if token in file.read() else None

        return go

    def descriptors(pid):
        def go():
            if pid in (1, os.getpid(), os.getppid()):
                return None
            return ", ".join(os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")) or None

        return go

    pids = {"sibling": target["sibling_pid"], "worker": target["worker_pid"], "first process": 1}
    return attempt(
        {
            **{f"root of the {name}": through(f"/proc/{pid}/root") for name, pid in pids.items()},
            **{f"directory of the {name}": through(f"/proc/{pid}/cwd/" + "../" * 9) for name, pid in pids.items()},
            **{f"descriptors of the {name}": descriptors(pid) for name, pid in pids.items()},
        }
    )
