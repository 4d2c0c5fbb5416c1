"""Leaves a link to a file of the host in its result's place."""

import os

from support.leaving import RESULT


def attack(target):
    os.symlink(target["secret_file"], RESULT)
    os._exit(0)
