"""
Looks for a capability: of its own, to be had by starting a program, or of the sandbox's first
process.
"""

import ctypes
import struct

from support.attempts import answer
from support.kernel import call

_VERSION = 0x20080522
_PR_CAPBSET_READ = 23
# More than there are; the kernel refuses those that it does not know.
_MOST = 64


def attack(target):
    found = {}
    for process in (0, 1):
        for name, mask in zip(("effective", "permitted", "inheritable"), _sets(process)):
            found[f"{name} set of process {process or 'self'}"] = mask
    found["bounding set"] = _bounding_set()
    return answer(
        [f"{name} {mask:x}" for name, mask in found.items() if mask],
        [f"no capability in {', '.join(found)}"],
    )


def _sets(process):
    """capget(2): the three sets as masks."""
    data = ctypes.create_string_buffer(24)
    call("capget", struct.pack("Ii", _VERSION, process), data)
    words = struct.unpack("6I", data.raw)
    return [low | high << 32 for low, high in zip(words[:3], words[3:])]


def _bounding_set():
    mask = 0
    for capability in range(_MOST):
        try:
            mask |= call("prctl", _PR_CAPBSET_READ, capability, 0, 0, 0) << capability
        except OSError:
            break
    return mask
