"""Opens sockets of every family, but for those that tools need."""

import os
import socket

from support.attempts import answer
from support.kernel import call

_HARMLESS = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
_KINDS = (socket.SOCK_DGRAM, socket.SOCK_STREAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET)
_FAMILIES = range(1, 64)


def attack(target):
    opened = {}
    for family in set(_FAMILIES) - set(_HARMLESS):
        for kind in _KINDS:
            try:
                os.close(call("socket", family, kind, 0))
                opened[family] = kind
            except OSError:
                pass
    return answer(
        [f"family {family}, kind {kind}" for family, kind in sorted(opened.items())],
        [f"none of {len(_FAMILIES) - len(_HARMLESS)} families"],
    )
