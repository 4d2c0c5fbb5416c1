"""Ignores every signal that asks it to end, in two sessions, and goes on beyond its time limit."""

import json
import os
import signal
import time

from support.attempts import answer

# Longer than the time limit of its manifest entry and what the worker grants after it. Who is let
# live so long says so, and the judge hears it; see worker/doctor/attacks/catalog/traces.ts.
_SECONDS = 7
_POLITE = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def attack(target):
    for number in _POLITE:
        signal.signal(number, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        os.setsid()
        # Its command line is what the judge looks for; see worker/doctor/attacks/left-processes.ts.
        name = f"str-left-ignoring-{target['token']}"
        os.execv("/bin/sh", ["sh", "-c", f"sleep {_SECONDS + 1}; :", name])
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_SECONDS)
    _say("str-went-on")
    os.kill(child, signal.SIGTERM)
    time.sleep(0.1)
    if os.waitpid(child, os.WNOHANG)[0] == child:
        return answer([], ["its child ended at SIGTERM"])
    return answer([f"both processes went on for {_SECONDS} s after SIGTERM"], [])


def _say(text):
    descriptor = os.open("status.pipe", os.O_WRONLY | os.O_NONBLOCK)
    os.write(descriptor, json.dumps({"status": text}).encode() + b"\n")
    os.close(descriptor)
