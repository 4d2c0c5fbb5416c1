"""Takes another root directory, from which ".." leads out."""

import os

from support.attempts import attempt, in_child


def attack(target):
    return attempt({"chroot": in_child(_leave)})


def _leave():
    before = os.stat("/")
    here = os.stat(".")
    outside = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    os.chroot(".")
    after = os.stat("/")
    if (after.st_dev, after.st_ino) != (here.st_dev, here.st_ino):
        return None
    os.fchdir(outside)
    above = os.stat("..")
    if (above.st_dev, above.st_ino) != (before.st_dev, before.st_ino):
        return f"the root is inode {after.st_ino}"
    return f"the root is inode {after.st_ino}, and inode {above.st_ino} is still reached above it"
