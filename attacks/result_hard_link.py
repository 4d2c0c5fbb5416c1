"""Leaves a second name of a file of the host in its result's place."""

import os

from support.leaving import RESULT


def attack(target):
    try:
        os.link(target["secret_file"], RESULT)
    except OSError as error:
        return {"reached": False, "evidence": f"link: {error.strerror}"}
    os._exit(0)
