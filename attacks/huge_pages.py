"""Maps one huge page of the host's reserve, which is on no process's account. It is not touched."""

import mmap

from support.attempts import attempt
from support.kernel import call

_SIZE = 2 << 20
_HUGE, _NO_RESERVE = 0x40000, 0x4000


def attack(target):
    return attempt({"mmap": _map})


def _map():
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _HUGE | _NO_RESERVE
    call("mmap", None, _SIZE, mmap.PROT_READ, flags, -1, 0)
    return f"{_SIZE:,} bytes of huge pages"
