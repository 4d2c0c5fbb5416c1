"""Calls a tool under the widest built-in profile, which shows all of /etc."""

from support.attempts import attempt
from support.channel import own_channel, reach_called

WIDEST = {"profile": "permissive", "sandbox_profile": "permissive"}


def attack(target):
    channel = own_channel(target)
    usual = reach_called(channel)["etc"]

    def seen(result):
        more = len(result["etc"]) - len(usual)
        return f"it sees {more} more files in /etc" if more > 0 else None

    def in_payload():
        payload = {"id": "called.listed", "args": {}, **WIDEST}
        return seen(channel.ask("run_tool", payload)["structured"])

    return attempt(
        {
            "in the arguments": lambda: seen(channel.run("called.listed", **WIDEST)),
            # The last way, as it closes the channel.
            "in the payload": in_payload,
        }
    )
