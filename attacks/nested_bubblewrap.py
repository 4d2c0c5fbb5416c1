"""Makes a sandbox inside the sandbox, in which it is root."""

import shutil
import subprocess

from support.attempts import answer

_SEARCH = "/usr/local/bin:/usr/bin:/bin"


def attack(target):
    bwrap = shutil.which("bwrap", path=_SEARCH)
    if bwrap is None:
        return answer([], ["there is no bwrap"])
    command = [bwrap, "--unshare-user", "--uid", "0", "--ro-bind", "/", "/", "/usr/bin/id", "-u"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=5)
    if done.stdout.strip() == "0":
        return answer(["it ran, and was user 0 inside"], [])
    return answer([], [done.stderr.strip() or f"exit status {done.returncode}"])
