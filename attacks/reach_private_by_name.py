"""
Connects to a listed name and port whose address is the host's own, where the list does not say that
it may be private: as a name would that its owner leads there.
"""

from functools import partial

from support.attempts import attempt
from support.listed import listen_to, reach_listed


def attack(target):
    talking = partial(listen_to, target, reach_listed(target), target["loopback_port"])
    return attempt({target["listed_name"]: talking})
