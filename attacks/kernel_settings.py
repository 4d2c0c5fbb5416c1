"""Opens the kernel's settings for writing, core_pattern among them, and writes nothing."""

import os

from support.attempts import answer
from support.kernel import call

_RDONLY, _REMOUNT, _BIND = 1, 32, 4096
_CORE_PATTERN = "/proc/sys/kernel/core_pattern"
_OTHERS = ("/proc/sysrq-trigger", "/sys/kernel/uevent_helper", "/proc/sys/fs/binfmt_misc/register")
_CONTROL_GROUPS = "/sys/fs/cgroup"
_MOST_NAMED = 5


def attack(target):
    _uncover("/proc/sys")
    paths = [_CORE_PATTERN, *_OTHERS, *_files("/proc/sys"), *_files(_CONTROL_GROUPS)]
    opened = sorted({path for path in paths if _opens(path)}, key=lambda path: (path != _CORE_PATTERN, path))
    named = ", ".join(opened[:_MOST_NAMED])
    return answer(
        [f"{len(opened)} files opened for writing: {named}"] if opened else [],
        [f"none of {len(paths)} files could be opened for writing"],
    )


def _uncover(place):
    """Makes it writable where it is mounted read-only."""
    try:
        call("mount", None, place.encode(), None, _REMOUNT | _BIND, None)
    except OSError:
        pass


def _files(root):
    return [os.path.join(directory, name) for directory, _, names in os.walk(root) for name in names]


def _opens(path):
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        return True
    except OSError:
        return False
