"""
Holds more connections to the listed host than the list allows, and counts those that get an
answer.
"""

from support.attempts import answer
from support.listed import answered_together, reach_listed

# How many times the bound.
EXCESS = 4


def attack(target):
    address = reach_listed(target)
    bound, tries = target["max_connections"], EXCESS * target["max_connections"]
    question = target["listed_name"].encode()
    answered = answered_together(address, target["listed_port"], question, tries)
    evidence = [f"{answered} of {tries} connections are answered, {bound} are allowed"]
    return answer(evidence if answered > bound else [], evidence)
