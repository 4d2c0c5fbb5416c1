"""Runs programs that run as their owner, such as su and mount, to see whether they still do."""

import os
import stat
import subprocess

from support.attempts import answer
from support.kernel import call

_PR_GET_NO_NEW_PRIVS = 39
_DIRECTORIES = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/lib/openssh", "/bin", "/sbin")
_MOST = 5


def attack(target):
    reached, blocked = [], []
    if call("prctl", _PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0:
        reached.append("new privileges can be gained: no_new_privs is 0")
    for path in _programs()[:_MOST]:
        ids = _ids(path)
        ours = {"AT_UID": os.getuid(), "AT_EUID": os.getuid(), "AT_GID": os.getgid(), "AT_EGID": os.getgid()}
        if ids == {**ours, "AT_SECURE": 0}:
            blocked.append(f"{path} runs as user {ids['AT_EUID']}")
        else:
            reached.append(f"{path} runs with {ids or 'ids that it hides'}")
    return answer(reached, blocked or ["no new privileges, and no such program"])


def _programs():
    found = set()
    for directory in _DIRECTORIES:
        if not os.path.isdir(directory):
            continue
        for entry in os.scandir(os.path.realpath(directory)):
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID) and os.access(entry.path, os.X_OK):
                found.add(entry.path)
    return sorted(found)


def _ids(path):
    """
    What the kernel told the program of itself. The loader does not say it of one that gained
    something: ld.so(8).
    """
    done = subprocess.run(
        [path, "--version"],
        env={"LD_SHOW_AUXV": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=2,
        text=True,
    )
    ids = {}
    for line in done.stdout.splitlines():
        name, _, value = line.partition(":")
        if name in ("AT_UID", "AT_EUID", "AT_GID", "AT_EGID", "AT_SECURE"):
            ids[name] = int(value)
    return ids
