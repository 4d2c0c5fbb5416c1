"""
Connects to a listed name and port whose address is the host's own, where the list does not say that
it may be private: as a name would that its owner leads there.
"""

from support.attempts import attempt
from support.listed import ask, reach_listed


def attack(target):
    listed = reach_listed(target)

    def talking():
        received = ask(listed, target["loopback_port"], b"", timeout=2).decode()
        return f"it says {received}" if received == target["token"] else None

    return attempt({target["listed_name"]: talking})
