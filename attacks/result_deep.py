"""Leaves a result of a million values in each other."""

from support.leaving import leave_result

LEVELS = 1_000_000


def attack(target):
    leave_result(b'{"result": {"rows": ' + b"[" * LEVELS + b"]" * LEVELS + b"}}")
