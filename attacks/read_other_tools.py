"""A tool that is isolated reads the source of another one."""

import os
import sys


def attack(target):
    beside = os.path.dirname(os.path.abspath(__file__))
    found = []
    for directory in dict.fromkeys([beside, "/tools", "/tools/python", "/tools/node", *sys.path]):
        for path, _, names in os.walk(directory):
            found += [os.path.join(path, name) for name in names if name == "victims_secret.py"]
    for path in found:
        try:
            with open(path) as file:
                if target["token"] in file.read():
                    return {"reached": True, "evidence": f"{path} holds {target['token']}"}
        except OSError:
            pass
    return {"reached": False, "evidence": f"{len(found)} of the other tool's files are there"}
