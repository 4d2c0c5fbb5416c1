"""
Changes the files by which names are looked up, so that a listed name leads elsewhere: opens them
for writing, and takes them away and puts them back.
"""

import os

from support.attempts import attempt
from support.listed import reach_listed

FILES = ("/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf")


def attack(target):
    reach_listed(target)

    def opening(path):
        def go():
            os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
            return "opened for writing"

        return go

    def moving(path):
        def go():
            os.rename(path, path + ".away")
            os.rename(path + ".away", path)
            return "it was away"

        return go

    def adding():
        path = "/etc/str-attack"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        os.unlink(path)
        return "it takes new files"

    return attempt(
        {
            **{path: opening(path) for path in FILES},
            **{f"{path} moved": moving(path) for path in FILES},
            "/etc": adding,
        }
    )
