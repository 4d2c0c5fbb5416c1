"""
Connects to a listed name that has a public address and the host's own, as a name has that its owner
leads elsewhere between a check and the connection: directly and by the proxy.
"""

from support.attempts import attempt
from support.listed import evidence, listed_address, listen_to
from support.proxied import reach_by_proxy, tunnel


def attack(target):
    reach_by_proxy(target)
    name, port = target["rebinding_name"], target["loopback_port"]
    return attempt(
        {
            "directly": lambda: listen_to(target, listed_address(name), port),
            "by the proxy": lambda: evidence(target, tunnel(f"{name}:{port}").encode()),
        }
    )
