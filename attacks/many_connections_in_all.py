"""
Makes more connections to the listed host than a call may make in all, a few at a time: directly, and
then by the proxy. It counts the answered ones.
"""

from support.attempts import answer
from support.listed import answered_together, listed_address
from support.proxied import reach_by_proxy, tunnel

# How many times the bound, and how many more by the proxy.
EXCESS = 2
BY_PROXY = 10


def attack(target):
    reach_by_proxy(target)
    name, port = target["listed_name"], target["listed_port"]
    address = listed_address(name)
    bound = target["max_connections_in_all"]
    # Beside those of the step before, whose ends the worker may still have to see.
    at_once = target["max_connections"] // 2
    # Those that reach_by_proxy made.
    answered, tries = 2, 2
    while answered <= bound and tries < EXCESS * bound:
        answered += answered_together(address, port, name.encode(), at_once)
        tries += at_once
    if answered < bound:
        raise RuntimeError(f"{answered} of {tries} connections are answered: too few for the bound")
    if answered == bound:
        tries += BY_PROXY
        answered += [by_proxy(name, port) for _ in range(BY_PROXY)].count(True)
    evidence = [f"{answered} of {tries} connections are answered, {bound} are allowed"]
    return answer(evidence if answered > bound else [], evidence)


def by_proxy(name, port):
    try:
        return tunnel(f"{name}:{port}", name) == "listed"
    except OSError:
        return False
