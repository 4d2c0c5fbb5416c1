"""
Holds more connections to the listed host than the list allows, and counts those that get an
answer.
"""

import socket
from contextlib import ExitStack

from support.attempts import answer
from support.listed import reach_listed

# How many times the bound.
EXCESS = 4


def attack(target):
    address = reach_listed(target)
    bound = target["max_connections"]
    question = target["listed_name"].encode()
    with ExitStack() as held:
        connections = []
        for _ in range(EXCESS * bound):
            try:
                connection = socket.create_connection((address, target["listed_port"]), timeout=2)
            except OSError:
                continue
            connections.append(held.enter_context(connection))
        answered = [is_answered(connection, question) for connection in connections].count(True)
    evidence = [f"{answered} of {EXCESS * bound} connections are answered, {bound} are allowed"]
    return answer(evidence if answered > bound else [], evidence)


def is_answered(connection, question):
    try:
        connection.sendall(question)
        return connection.recv(100) == b"listed"
    except OSError:
        return False
