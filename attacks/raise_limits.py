"""Raises the limits on what a process may use."""

import resource

from support.attempts import answer

_LIMITS = {
    "address space": resource.RLIMIT_AS,
    "CPU time": resource.RLIMIT_CPU,
    "file size": resource.RLIMIT_FSIZE,
    "open files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
    "core dumps": resource.RLIMIT_CORE,
    "message queues": resource.RLIMIT_MSGQUEUE,
    "queued signals": resource.RLIMIT_SIGPENDING,
    "locked memory": resource.RLIMIT_MEMLOCK,
}
# By how much the signal that says a limit is reached may come before the kill.
_GRACE = {resource.RLIMIT_CPU: 1}


def attack(target):
    reached, blocked = [], []
    for name, kind in _LIMITS.items():
        before = resource.getrlimit(kind)
        for wanted in ((resource.RLIM_INFINITY,) * 2, (before[1], before[1])):
            _try_to_set(kind, wanted)
        after = resource.getrlimit(kind)
        allowed = _height(before[0]) + _GRACE.get(kind, 0)
        if _height(after[0]) > allowed or _height(after[1]) > _height(before[1]):
            reached.append(f"{name} from {before} to {after}")
        else:
            blocked.append(f"{name} stays {after}")
        _try_to_set(kind, before)
    return answer(reached, blocked)


def _try_to_set(kind, limits):
    try:
        resource.setrlimit(kind, limits)
    except (OSError, ValueError):
        pass


def _height(limit):
    return float("inf") if limit == resource.RLIM_INFINITY else limit
