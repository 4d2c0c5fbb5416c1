"""Leaves outputs under names that break lines, steer terminals, look like others or are no text."""

import os

from support.leaving import leave

NAMES = (
    b"new\nline.txt",
    b"\x1b[2J\x1b]0;owned\x07.txt",
    b"-rf",
    b"x" * 255,
    b"\xff\xfe.txt",
    b"..\xef\xbc\x8f..\xef\xbc\x8fetc",
    "invoice\u202egpj.exe".encode(),
    b"__proto__",
    b"a\\..\\b",
    b" ",
)


def attack(target):
    for name in NAMES:
        descriptor = os.open(b"output/" + name, os.O_WRONLY | os.O_CREAT)
        os.write(descriptor, b"x")
        os.close(descriptor)
    leave()
