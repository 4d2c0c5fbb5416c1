"""
Puts itself before the other processes of the host: by its priority, a real-time scheduler, and the
disk's queue.
"""

import os

from support.attempts import attempt, in_child
from support.kernel import call

_IOPRIO_REAL_TIME = 1 << 13
_WHO_PROCESS = 1


def attack(target):
    return attempt(
        {
            "setpriority": in_child(_nice),
            "sched_setscheduler": in_child(_real_time),
            "ioprio_set": in_child(_disk),
            "oom_score_adj": in_child(_last_to_be_killed),
        }
    )


def _nice():
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, before - 1)
    return f"from {before} to {os.getpriority(os.PRIO_PROCESS, 0)}"


def _real_time():
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    return f"scheduler {os.sched_getscheduler(0)}"


def _disk():
    call("ioprio_set", _WHO_PROCESS, 0, _IOPRIO_REAL_TIME)
    return "real-time class"


def _last_to_be_killed():
    with open("/proc/self/oom_score_adj", "r+") as file:
        before = int(file.read())
        file.seek(0)
        file.write(str(before - 1))
        file.flush()
    with open("/proc/self/oom_score_adj") as file:
        return f"from {before} to {file.read().strip()}"
