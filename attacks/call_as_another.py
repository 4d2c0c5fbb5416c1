"""Calls a tool for another user, at another depth."""

from support.attempts import attempt
from support.channel import own_channel, reach_called

ANOTHER = {"user_id": "str-another", "session_id": "str-another", "depth": 0}


def attack(target):
    channel = own_channel(target)
    reach_called(channel)

    def told(result):
        return f"it runs for {result['user']}" if result["user"] == ANOTHER["user_id"] else None

    def in_payload():
        payload = {"id": "called.listed", "args": {}, **ANOTHER}
        return told(channel.ask("run_tool", payload)["structured"])

    return attempt(
        {
            "in the arguments": lambda: told(channel.run("called.listed", **ANOTHER)),
            # The last way, as it closes the channel.
            "in the payload": in_payload,
        }
    )
