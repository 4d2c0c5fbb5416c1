"""Leaves files for a later call wherever it can write."""

import os
import sys

from support.attempts import answer
from support.mounts import mount_points

_PLACES = (
    ".",
    "output",
    "input",
    "..",
    "/",
    "/tmp",
    "/dev",
    "/dev/shm",
    "/dev/mqueue",
    "/var",
    "/var/tmp",
    "/run",
    "/proc",
    "/etc",
    "/home",
    "/usr/local",
    "/tools",
    "/sandbox",
    "/sandbox/runner",
    "/sandbox/compile-cache",
)


def attack(target):
    name = f"trace-{target['token']}"
    known = (*_PLACES, *sys.path, *mount_points(), os.path.expanduser("~"))
    places = {os.path.realpath(place): None for place in known}
    paths = [os.path.join(place, name) for place in places]
    if target["round"] == 1:
        left = [path for path in paths if _leave(path)]
        return answer([], [f"left {len(left)} files: {', '.join(left)}"])
    found = [path for path in paths if os.path.lexists(path)]
    for path in found:
        os.unlink(path)
    return answer(found, [f"none of {len(paths)} places has what was left"])


def _leave(path):
    try:
        with open(path, "x"):
            return True
    except OSError:
        return False
