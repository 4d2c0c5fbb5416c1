"""Leaves links to a file of the host as outputs."""

import os

from support.leaving import leave


def attack(target):
    secret = target["secret_file"]
    os.symlink(secret, "output/report.txt")
    os.symlink("../" * 20 + secret.lstrip("/"), "output/up.txt")
    os.symlink("report.txt", "output/again.txt")
    os.symlink(f"/proc/self/root{secret}", "output/proc.txt")
    leave()
