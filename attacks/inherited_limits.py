"""
Looks for limits that are as whoever started the sandbox has them, by which one holds memory that
nobody counts.
"""

import resource

from support.attempts import answer

# What tools need at most. The last two are of priority, and of those 20 minus the nice value.
_MOST = {
    "bytes of core dumps": (resource.RLIMIT_CORE, 0),
    "bytes of message queues": (resource.RLIMIT_MSGQUEUE, 0),
    "queued signals": (resource.RLIMIT_SIGPENDING, 1024),
    "bytes of locked memory": (resource.RLIMIT_MEMLOCK, 64 * 1024),
    "real-time priority": (resource.RLIMIT_RTPRIO, 0),
    "nice ceiling": (resource.RLIMIT_NICE, 0),
}


def attack(target):
    found, blocked = [], []
    for name, (kind, most) in _MOST.items():
        hard = resource.getrlimit(kind)[1]
        is_excess = hard == resource.RLIM_INFINITY or hard > most
        amount = "without a bound" if hard == resource.RLIM_INFINITY else f"at most {hard}"
        (found if is_excess else blocked).append(f"{name} {amount}")
    return answer(found, blocked)
