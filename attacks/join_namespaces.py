"""
Enters the namespaces of other processes, the worker's among them, and looks for those that enclose
its own.
"""

import ctypes
import os

from support.attempts import attempt, in_child
from support.kernel import call
from support.namespaces import KINDS

# ioctl_nsfs(2): the owner, the parent, and the next and previous mount namespace.
_REQUESTS = {"owner": 0xB701, "parent": 0xB702, "next": 0x8010B70B, "previous": 0x8010B70C}


def attack(target):
    ways = {}
    for process in (1, target["worker_pid"], target["sibling_pid"]):
        for kind, flag in KINDS.items():
            ways[f"{kind} of {process}"] = in_child(lambda p=process, k=kind: _join_by_name(p, k))
        ways[f"all of {process}"] = in_child(lambda p=process: _join_by_process(p))
    for kind in ("user", "pid", "mnt"):
        for relation in _REQUESTS:
            ways[f"{relation} of own {kind}"] = lambda k=kind, r=relation: _related(k, r)
    return attempt(ways)


def _join_by_name(process, kind):
    namespace = os.open(f"/proc/{process}/ns/{kind}", os.O_RDONLY)
    call("setns", namespace, 0)
    return f"joined {kind}:[{os.fstat(namespace).st_ino}]"


def _join_by_process(process):
    descriptor = os.pidfd_open(process)
    # Joining one's own user namespace is refused to everybody.
    flags = sum(flag for kind, flag in KINDS.items() if kind not in ("user", "pid"))
    call("setns", descriptor, flags)
    return f"joined by the descriptor of process {process}"


def _related(kind, relation):
    own = os.open(f"/proc/self/ns/{kind}", os.O_RDONLY)
    try:
        # What the requests about mount namespaces also write.
        found = call("ioctl", own, _REQUESTS[relation], ctypes.create_string_buffer(16))
    finally:
        os.close(own)
    inode = os.fstat(found).st_ino
    os.close(found)
    if inode in _own_inodes():
        return None
    return f"namespace {inode}"


def _own_inodes():
    return [os.stat(f"/proc/self/ns/{kind}").st_ino for kind in KINDS]
