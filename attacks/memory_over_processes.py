"""Holds more memory than there may be, in several processes with less each."""

from support.taking import take_in_processes


def attack(target):
    return take_in_processes(target["limits"]["memory_bytes"], hold)


def hold(part, stay):
    piece = b"x" * part
    stay(len(piece))
