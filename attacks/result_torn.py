"""Leaves half a result, with bytes that are no text."""

from support.leaving import leave_result


def attack(target):
    leave_result(b'{"result": {"text": "\xff\xfe\x00 ')
