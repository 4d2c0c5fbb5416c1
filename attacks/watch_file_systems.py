"""Watches files by fanotify(7)."""

import os

from support.attempts import attempt
from support.kernel import call

# The kind that needs no privilege since Linux 5.13.
_REPORT_FID = 0x200


def attack(target):
    return attempt({"fanotify_init": _group})


def _group():
    descriptor = call("fanotify_init", _REPORT_FID, os.O_RDONLY)
    os.close(descriptor)
    return f"a group, descriptor {descriptor}"
