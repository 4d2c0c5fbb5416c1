"""Connects to a service whose address the list of hosts does not have, however it is written."""

from functools import partial

from support.attempts import attempt
from support.listed import listen_to, reach_listed

SPELLINGS = (
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "127.0.0.2",
    "0.0.0.0",
    "0",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "localhost",
    "LOCALHOST.",
)


def attack(target):
    listed = reach_listed(target)
    port = target["loopback_port"]
    return attempt({host: partial(listen_to, target, host, port) for host in (*SPELLINGS, listed)})
