"""
Finds itself on more processors than it may have, or places itself on more than it was placed on.
"""

import os

from support.attempts import answer, error_name

# More than a host has.
_ALL = range(4096)


def attack(target):
    given = os.sched_getaffinity(0)
    most = target["limits"]["cpus"]
    if len(given) > most:
        return answer([f"placed on {len(given)} processors, bound {most}"], [])
    blocked = []
    # One that may use all has nothing to undo, so it gives some away first.
    for wanted in ({min(given)}, _ALL):
        try:
            os.sched_setaffinity(0, wanted)
        except OSError as error:
            blocked.append(f"sched_setaffinity: {error_name(error)}")
        if wanted is not _ALL:
            placed = os.sched_getaffinity(0)
    gained = os.sched_getaffinity(0) - placed
    return answer([f"processors {sorted(gained)} gained"] if gained else [], [*blocked, f"stays on {sorted(placed)}"])
