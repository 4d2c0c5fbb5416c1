"""
Leaves keys for a later call in the kernel's keyrings, which no mount or network namespace keeps
apart.
"""

from support.attempts import attempt
from support.kernel import call

_KEYRINGS = {"thread": -1, "process": -2, "session": -3, "user": -4, "user session": -5}
_INVALIDATE, _SEARCH, _READ = 21, 10, 11
_KIND = b"user"


def attack(target):
    name = f"str-attack-{target['token']}".encode()
    way = _leave if target["round"] == 1 else _find
    found = attempt({ring: lambda number=number: way(name, number) for ring, number in _KEYRINGS.items()})
    return found if target["round"] > 1 else {"reached": False, "evidence": found["evidence"]}


def _leave(name, keyring):
    return f"left key {call('add_key', _KIND, name, b'note', 4, keyring)}"


def _find(name, keyring):
    key = call("keyctl", _SEARCH, keyring, _KIND, name, 0)
    call("keyctl", _INVALIDATE, key, 0, 0, 0)
    return f"found key {key}"
