"""Reads the command line of the sandbox's first process, for paths of the host."""

import os


def attack(target):
    try:
        with open("/proc/1/cmdline", "rb") as file:
            line = file.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError as error:
        return {"reached": False, "evidence": f"/proc/1/cmdline: {error.strerror}"}
    wanted = {
        "the token": target["token"],
        "where work directories are": target["work_base"],
        "where tools are": os.path.dirname(target["secret_file"]),
    }
    shown = [what for what, text in wanted.items() if text in line]
    if shown:
        return {"reached": True, "evidence": "the command line of process 1 tells " + ", ".join(shown)}
    return {"reached": False, "evidence": f"process 1 is {line}"[:200]}
