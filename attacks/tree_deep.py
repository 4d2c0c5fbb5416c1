"""Leaves more directories in each other than a path, a stack or a descriptor table has room for."""

import os

from support.leaving import leave


def attack(target):
    top = os.open(".", os.O_RDONLY)
    for _level in range(2 * target["limits"]["files"] - 100):
        os.mkdir("deeper-and-deeper")
        os.chdir("deeper-and-deeper")
    os.fchdir(top)
    leave()
