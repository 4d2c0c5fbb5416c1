"""Talks to what a call in another sandbox of the same list listens on."""

from functools import partial

from support.attempts import attempt
from support.listed import (
    listen_to,
    listen_to_abstract,
    reach_listed,
    victim_port,
    victim_socket,
)


def attack(target):
    listed = reach_listed(target)
    port, name = victim_port(target["token"]), victim_socket(target["token"])
    hosts = ("127.0.0.1", "127.0.0.2", "192.0.2.1", listed)
    ways = {host: partial(listen_to, target, host, port) for host in hosts}
    return attempt({**ways, "an abstract socket": partial(listen_to_abstract, target, name)})
