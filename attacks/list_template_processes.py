"""
Looks for the process that loaded its module for all calls: a call's sandbox shows its own processes
only.
"""

import os

from support.attempts import answer
from support.template import Import, start_of

_IMPORT = Import()


def attack(target):
    if not _IMPORT.is_elsewhere():
        return answer([], ["its module was imported in its own sandbox"])
    try:
        shown = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        shown = []
    started = _IMPORT.process
    found = [pid for pid in shown if started is not None and start_of(pid) == started]
    return answer(
        [f"process {pid} started at {started}, as the one that imported the module" for pid in found],
        [f"none of {len(shown)} processes imported the module"],
    )
