"""Leaves a named pipe in its result's place, for whose writer a reader waits."""

import os

from support.leaving import RESULT


def attack(target):
    os.mkfifo(RESULT)
    os._exit(0)
