"""Leaves a named pipe and a socket as outputs, for whose other ends a reader waits."""

import os
import socket

from support.leaving import leave


def attack(target):
    os.mkfifo("output/a-report.txt")
    socket.socket(socket.AF_UNIX).bind("output/b-report.txt")
    leave()
