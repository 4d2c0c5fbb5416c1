"""Makes what is mounted read-only writable, and read-only again. Writes nothing."""

import os
import struct

from support.attempts import attempt
from support.kernel import call

_RDONLY, _NOSUID, _NODEV, _REMOUNT, _BIND = 1, 2, 4, 32, 4096
_AT_FDCWD = -100
_PLACES = ("/", "/usr", "/etc", "/dev", "/proc/sys", "/tools/python", "/sandbox/runner")


def attack(target):
    places = [place for place in _PLACES if os.path.isdir(place) and _is_read_only(place)]
    return attempt(
        {
            f"{name} {place}": lambda way=way, place=place: _make_writable(way, place)
            for place in places
            for name, way in (("remount", _by_mount), ("mount_setattr", _by_attributes))
        }
    )


def _make_writable(way, place):
    way(place, False)
    if _is_read_only(place):
        return None
    way(place, True)
    return "it was writable"


def _by_mount(place, read_only):
    flags = _REMOUNT | _BIND | os.statvfs(place).f_flag & (_NOSUID | _NODEV)
    call("mount", None, place.encode(), None, flags | (_RDONLY if read_only else 0), None)


def _by_attributes(place, read_only):
    # struct mount_attr: to set, to clear, propagation, user namespace.
    attributes = struct.pack("4Q", _RDONLY if read_only else 0, 0 if read_only else _RDONLY, 0, 0)
    call("mount_setattr", _AT_FDCWD, place.encode(), 0, attributes, len(attributes))


def _is_read_only(place):
    return bool(os.statvfs(place).f_flag & os.ST_RDONLY)
