"""
Takes an instance of inotify(7), of which the user of all sandboxes has few: who takes all leaves
none for others.
"""

import os

from support.attempts import attempt
from support.kernel import call

_MOST = "/proc/sys/fs/inotify/max_user_instances"


def attack(target):
    return attempt({"inotify_init1": _instance})


def _instance():
    os.close(call("inotify_init1", os.O_CLOEXEC))
    try:
        with open(_MOST) as file:
            return f"one of the {int(file.read())} that its host user has"
    except OSError:
        return "one of those that its host user has"
