"""Leaves second names of a file of the host as outputs."""

import os

from support.attempts import attempt
from support.leaving import leave


def attack(target):
    tried = attempt({"link": lambda: os.link(target["secret_file"], "output/report.txt") or "made"})
    if not tried["reached"]:
        return tried
    leave()
