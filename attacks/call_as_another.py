"""Calls a tool for another user, at another depth."""

from support.attempts import attempt
from support.channel import own_channel, reach_called, ways_to_claim

ANOTHER = {"user_id": "str-another", "session_id": "str-another", "depth": 0}


def attack(target):
    channel = own_channel(target)
    reach_called(channel)

    def told(result):
        return f"it runs for {result['user']}" if result["user"] == ANOTHER["user_id"] else None

    return attempt(ways_to_claim(channel, ANOTHER, told))
