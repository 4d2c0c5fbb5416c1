"""Leaves a result without a byte in it."""

from support.leaving import leave_result


def attack(target):
    leave_result(b"")
