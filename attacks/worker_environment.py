"""Reads the environment and the command line of every process it can see, the worker first."""

import os


def attack(target):
    token = target["token"].encode()
    own = os.getpid()
    pids = [target["worker_pid"], target["sibling_pid"]]
    try:
        pids += [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        pass
    read = 0
    for pid in dict.fromkeys(pids):
        for name in ("environ", "cmdline"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    content = file.read()
            except OSError:
                continue
            read += 1
            if token in content and pid != own:
                return {"reached": True, "evidence": f"{name} of process {pid} holds {target['token']}"}
    return {"reached": False, "evidence": f"{read} files of processes, none with the token"}
