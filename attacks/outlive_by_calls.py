"""
Leaves a tool that it called running, and a process that holds the channel and calls another one
after the end.
"""

import os
import time

from support.attempts import answer
from support.channel import own_channel, reach_called
from support.staying import staying_name, stays

_KINDS = ("early", "late")
_EARLY_SECONDS = 0.3
_LATE_SECONDS = 0.1


def attack(target):
    """Every call looks for what the call before has left, and leaves some of its own."""
    this = target["round"]
    found = [kind for kind in _KINDS if stays(staying_name(kind, this - 1, target))]
    channel = own_channel(target)
    reach_called(channel)
    early, late = ({"id": "called.stays", "args": {"name": staying_name(kind, this, target)}} for kind in _KINDS)
    channel.send("run_tool", early)
    # It has started, or is about to.
    time.sleep(_EARLY_SECONDS)
    tool = os.getpid()
    if os.fork() == 0:
        os.setsid()
        while os.getppid() == tool:
            time.sleep(_LATE_SECONDS)
        channel.send("run_tool", late)
        time.sleep(_EARLY_SECONDS)
        os._exit(0)
    return answer([f"the {kind} one of the call before is still there" for kind in found], ["none of the call before"])
