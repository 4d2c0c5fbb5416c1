"""
Looks for descriptors that whoever started the sandbox left open: beyond its three streams a tool
has none but its own, and one stream socket where its sandbox has waited for the call.
"""

import os
import socket
import stat

MOST_DESCRIPTORS = 4096


def attack(target):
    own = {(status.st_dev, status.st_ino) for status in map(os.stat, (".", "status.pipe", "input", "output"))}
    left, channels = [], 0
    for descriptor in range(3, MOST_DESCRIPTORS):
        try:
            status = os.fstat(descriptor)
        except OSError:
            continue
        if is_channel(descriptor, status):
            channels += 1
        elif (status.st_dev, status.st_ino) not in own:
            left.append(f"{descriptor} is {describe(descriptor, status)}{content(descriptor, status, target)}")
    evidence = "; ".join(left) or "none but its own"
    return {"reached": bool(left), "evidence": evidence, "channels": channels}


def is_channel(descriptor, status):
    if not stat.S_ISSOCK(status.st_mode):
        return False
    with socket.socket(fileno=os.dup(descriptor)) as copy:
        return copy.family == socket.AF_UNIX and copy.type == socket.SOCK_STREAM


def describe(descriptor, status):
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return oct(stat.S_IFMT(status.st_mode))


def content(descriptor, status, target):
    if not stat.S_ISREG(status.st_mode):
        return ""
    try:
        return f", which holds {target['token']}" if target["token"].encode() in os.pread(descriptor, 4096, 0) else ""
    except OSError:
        return ""
