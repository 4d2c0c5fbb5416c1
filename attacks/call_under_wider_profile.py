"""Calls a tool under the widest built-in profile, which shows all of /etc."""

from support.attempts import attempt
from support.channel import own_channel, reach_called, ways_to_claim

WIDEST = {"profile": "permissive", "sandbox_profile": "permissive"}


def attack(target):
    channel = own_channel(target)
    usual = reach_called(channel)["etc"]

    def seen(result):
        more = len(result["etc"]) - len(usual)
        return f"it sees {more} more files in /etc" if more > 0 else None

    return attempt(ways_to_claim(channel, WIDEST, seen))
