"""Looks for variables of the worker in the tool's own environment."""

import os


def attack(target):
    value = os.environ.get(target["variable"])
    if value == target["token"]:
        return {"reached": True, "evidence": f"{target['variable']} is {value}"}
    if target["token"] in str(dict(os.environ)):
        return {"reached": True, "evidence": f"a variable holds {target['token']}"}
    return {"reached": False, "evidence": "variables: " + ", ".join(sorted(os.environ))}
