"""Leaves a directory in its result's place."""

import os

from support.leaving import RESULT


def attack(target):
    os.mkdir(RESULT)
    os._exit(0)
