"""Calls itself, and counts how deep that goes."""

from support.channel import Refused, own_channel

# Its manifest entry allows a depth of 2.
TOO_DEEP = 4


def attack(target):
    level = target.get("level", 0)
    if level == TOO_DEEP:
        return {"reached": True, "evidence": f"{level} calls in each other"}
    below = {**target, "level": level + 1}
    try:
        return own_channel(target).run("cold.recurse_by_calls", target=below)
    except Refused as refused:
        return {"reached": level == 0, "evidence": f"{refused.args[0]} after {level} calls in each other"}
