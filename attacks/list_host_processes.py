"""
Looks for processes that are not the sandbox's own: in /proc, and by asking the kernel for each
number.
"""

import os


def attack(target):
    wanted = {"the sibling": target["sibling_pid"], "the worker": target["worker_pid"]}
    shown = set()
    try:
        shown = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    except OSError:
        pass
    # Numbers in a sandbox are its own and small; here only what belongs to nobody inside counts.
    inside = {1, os.getpid(), os.getppid()}
    seen = [name for name, pid in wanted.items() if pid in shown - inside]
    asked = [name for name, pid in wanted.items() if pid not in inside and answers(pid)]
    if seen or asked:
        return {"reached": True, "evidence": f"in /proc: {seen}, by getsid(2): {asked}, of {len(shown)} processes"}
    return {"reached": False, "evidence": f"{len(shown)} processes in /proc, none of the host's"}


def answers(pid):
    try:
        os.getsid(pid)
        return True
    except OSError:
        return False
