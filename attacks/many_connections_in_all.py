"""
Makes more connections to the listed host than a call may make in all, one after the other: directly,
and then by the proxy. It counts those that are answered.
"""

from functools import partial
from itertools import repeat

from support.attempts import answer
from support.listed import ask, listed_address
from support.proxied import reach_by_proxy, tunnel

# How many times the bound, and how many more by the proxy.
EXCESS = 2
BY_PROXY = 10


def attack(target):
    reach_by_proxy(target)
    name, port = target["listed_name"], target["listed_port"]
    bound = target["max_connections_in_all"]
    directly = partial(ask, listed_address(name), port, name.encode())
    by_proxy = partial(tunnel, f"{name}:{port}", name)
    # Those that reach_by_proxy made.
    answered, tries = 2, 2
    for connect in (*repeat(directly, EXCESS * bound), *repeat(by_proxy, BY_PROXY)):
        if answered > bound:
            break
        tries += 1
        try:
            answered += connect() in (b"listed", "listed")
        except OSError:
            continue
    evidence = [f"{answered} of {tries} connections are answered, {bound} are allowed"]
    return answer(evidence if answered > bound else [], evidence)
