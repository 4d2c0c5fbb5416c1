"""Calls itself through a tool that calls whatever it is told, and counts how deep that goes."""

from support.channel import Refused, own_channel

# Its manifest entry allows a depth of 2, and each level takes two.
TOO_DEEP = 2


def attack(target):
    level = target.get("level", 0)
    if level == TOO_DEEP:
        return {"reached": True, "evidence": f"it called itself {level} times"}
    below = {"target": {**target, "level": level + 1}}
    try:
        return own_channel(target).run("called.forwards", named="cold.recurse_by_calls", args=below)
    except Refused as refused:
        evidence = f"{refused.args[0]} after it called itself {level} times"
        return {"reached": level == 0, "evidence": evidence}
