"""Makes itself user 0, group 0, or gives itself every capability."""

import os
import struct

from support.attempts import attempt, in_child
from support.kernel import call

_VERSION = 0x20080522
_ALL_BITS = 0xFFFFFFFF


def attack(target):
    return attempt(
        {
            "setresuid": in_child(_user),
            "setresgid": in_child(_group),
            "setgroups": in_child(_groups),
            "capset": in_child(_capabilities),
        }
    )


def _user():
    os.setresuid(0, 0, 0)
    return f"user ids {os.getresuid()}"


def _group():
    os.setresgid(0, 0, 0)
    return f"group ids {os.getresgid()}"


def _groups():
    os.setgroups([0])
    return f"groups {os.getgroups()}"


def _capabilities():
    high = 0x1FF
    call(
        "capset",
        struct.pack("Ii", _VERSION, 0),
        struct.pack("6I", _ALL_BITS, _ALL_BITS, 0, high, high, 0),
    )
    return "capabilities 0-40"
