"""Looks for a mount that others share and that is not read-only, whoever may write to its files."""

import os
import sys

from support.attempts import answer
from support.mounts import mount_points

# What a sandbox has of its own. Directories only: devices are there to be written to.
_OWN = ("/tmp", "/var", "/dev/shm", "/dev/pts")
# Of a template, which makes mounts and tells the kernel of user namespaces; those who come from it
# do not see them.
_OF_TEMPLATES = ("/proc", "/sandbox/template")
_KNOWN = ("/", "/usr", "/bin", "/lib", "/lib64", "/sbin", "/etc", "/dev", "/proc", "/sandbox", "/tools")


def attack(target):
    own = {*_OWN, os.getcwd(), *(_OF_TEMPLATES if os.path.exists("/sandbox/template/socket") else ())}
    places = {*_KNOWN, *sys.path, *mount_points()} - own
    found = sorted(place for place in places if _is_writable(place))
    return answer(
        [f"{place} is mounted writable" for place in found],
        [f"{len(places)} places are mounted read-only, or not there"],
    )


def _is_writable(place):
    try:
        return os.path.isdir(place) and not os.statvfs(place).f_flag & os.ST_RDONLY
    except OSError:
        return False
