"""
Looks for the work directory that its module was imported in: a call's sandbox has its own only.
"""

import glob
import os

from support.attempts import answer
from support.mounts import mount_points
from support.template import Import, is_directory_of

_MOST_DIRECTORIES = 2_000
_IMPORT = Import()


def attack(target):
    if not _IMPORT.is_elsewhere():
        return answer([], ["its module was imported in its own sandbox"])
    paths = list(_paths(target))
    found = [path for path in paths if is_directory_of(path, _IMPORT.directory)]
    if is_directory_of(".", _IMPORT.directory):
        found.append("its own work directory")
    return answer(
        [f"{path} is the directory of the import" for path in found],
        [f"none of {len(paths)} directories is that of the import"],
    )


def _paths(target):
    """Directories where it may be, and what other processes have as theirs."""
    yield from glob.glob("/proc/[0-9]*/cwd")
    yield from glob.glob("/proc/[0-9]*/root/sandbox/work")
    yield from mount_points()
    left = _MOST_DIRECTORIES
    for place in ("/sandbox", target["work_base"], os.path.dirname(target["work_base"]), "/tmp", "/var", "/dev"):
        for directory, names, _ in os.walk(place):
            yield directory
            left -= 1
            if left < 0:
                return
            names.sort()
