"""
Makes more connections to the listed host than a call may make in all, one after the other, and
counts those that are answered.
"""

from support.attempts import answer
from support.listed import ask, reach_listed

# How many times the bound.
EXCESS = 2


def attack(target):
    address = reach_listed(target)
    bound = target["max_connections_in_all"]
    question = target["listed_name"].encode()
    answered = tries = 0
    while tries < EXCESS * bound and answered <= bound:
        tries += 1
        try:
            answered += ask(address, target["listed_port"], question) == b"listed"
        except OSError:
            continue
    evidence = [f"{answered} of {tries} connections are answered, {bound} are allowed"]
    return answer(evidence if answered > bound else [], evidence)
