"""
Reads the environment of the sandbox's first process, for what the tool has not in its own, or what
is worth having.
"""

import os


def attack(target):
    own = {name + b"=" + value for name, value in os.environb.items()}
    token = target["token"].encode()
    try:
        with open("/proc/1/environ", "rb") as file:
            block = file.read()
    except OSError as error:
        return {"reached": False, "evidence": f"/proc/1/environ: {error.strerror}"}
    entries = {entry for entry in block.split(b"\0") if entry}
    found = {entry for entry in entries if entry not in own or token in entry}
    names = sorted(entry.split(b"=")[0].decode("utf-8", "replace") for entry in found)
    if names:
        return {"reached": True, "evidence": "variables of process 1: " + ", ".join(names)}
    return {"reached": False, "evidence": f"process 1 has {len(entries)} variables, all of them the tool's own"}
