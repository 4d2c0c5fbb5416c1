"""Reads the environment of the sandbox's first process, which shows what the sandbox program was started with."""


def attack(target):
    try:
        with open("/proc/1/environ", "rb") as file:
            block = file.read()
    except OSError as error:
        return {"reached": False, "evidence": f"/proc/1/environ: {error.strerror}"}
    names = sorted({entry.split(b"=")[0].decode("utf-8", "replace") for entry in block.split(b"\0") if entry})
    if names:
        return {"reached": True, "evidence": "variables of process 1: " + ", ".join(names)}
    return {"reached": False, "evidence": "process 1 has no variables"}
