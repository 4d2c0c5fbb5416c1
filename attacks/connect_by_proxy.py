"""
Has the proxy connect to what the list does not have: another port of the listed host, addresses in
every spelling, and the cloud's metadata service.
"""

import socket
from functools import partial

from support.attempts import attempt
from support.proxied import reach_by_proxy, tunnel

SPELLINGS = (
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f.1",
    "0177.0.0.1",
    "127.0.0.1.",
    "0.0.0.0",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "user@127.0.0.1",
)


def attack(target):
    reach_by_proxy(target)
    port, third_port = target["loopback_port"], target["unlisted_port"]
    authorities = (
        f"{target['listed_name']}:{third_port}",
        f"{target['listed_name']}.:{third_port}",
        f"127.0.0.1:{third_port}",
        f"{target['listed_name']}:{port}",
        *(f"{spelling}:{port}" for spelling in SPELLINGS),
        f"{target['metadata_address']}:80",
    )
    return attempt({authority: partial(connecting, target, authority) for authority in authorities})


def connecting(target, authority):
    """Evidence when a tunnel yields the token, or stays open: metadata services speak second."""
    try:
        received = tunnel(authority)
    except socket.timeout:
        return "the tunnel stays open"
    return f"it says {received}" if received == target["token"] else None
