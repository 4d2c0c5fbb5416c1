"""
Looks for the files of a call that runs at the same time: work directory, tmpfs, temporary
files.
"""

import os

# A victim has its secret in a few files; no other call has so many.
MOST_FILES = 20_000


def attack(target):
    secret = f"victim {target['token']}".encode()
    places = (target["work_base"], os.path.dirname(target["work_base"]), "/sandbox", "..", "/tmp", "/dev/shm", "/var")
    seen = 0
    for place in places:
        for directory, _, names in os.walk(place):
            for name in names:
                path = os.path.join(directory, name)
                seen += 1
                if seen > MOST_FILES or not os.path.isfile(path):
                    continue
                try:
                    with open(path, "rb") as file:
                        if secret in file.read(4096):
                            return {"reached": True, "evidence": f"{path} holds {secret.decode()}"}
                except OSError:
                    pass
    return {"reached": False, "evidence": f"{seen} files, none of them the victim's"}
