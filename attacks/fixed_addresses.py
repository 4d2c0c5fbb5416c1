"""Switches off the randomness of addresses, for programs that it starts, by its personality."""

from support.attempts import attempt, in_child
from support.kernel import call

_ASK = 0xFFFFFFFF
_WAYS = {"ADDR_NO_RANDOMIZE": 0x0040000, "READ_IMPLIES_EXEC": 0x0400000, "MMAP_PAGE_ZERO": 0x0100000}


def attack(target):
    return attempt({name: in_child(lambda bit=bit: _become(bit)) for name, bit in _WAYS.items()})


def _become(bit):
    call("personality", bit)
    now = call("personality", _ASK)
    return f"personality {now:x}" if now & bit else None
