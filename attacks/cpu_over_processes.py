"""Takes more processor time than there may be, in several processes with less each."""

import os

from support.burning import answer, start_burning

PROCESSES = 4


def attack(target):
    bound = target["limits"]["cpu_seconds"]
    used = 0.0
    for pid in [start_burning(1.3 * bound / PROCESSES) for _process in range(PROCESSES)]:
        usage = os.wait4(pid, 0)[2]
        used += usage.ru_utime + usage.ru_stime
    return answer(used, bound)
