"""
Writes where only others may: into a directory that is open to everybody, and over what every tool
runs from.
"""

import os
import secrets

from support.attempts import attempt

# What calls share. A file without a name (O_TMPFILE, open(2)) proves that one could be made, and
# leaves nothing.
SHARED = ("/", "/usr", "/usr/bin", "/usr/lib", "/etc", "/dev", "/tools", "/tools/python", "/sandbox", "/sandbox/runner")
PROGRAMS = ("/usr/bin/env", "/bin/sh", "/sandbox/runner/tool_runner/__main__.py", __file__)


def attack(target):
    def in_open_directory():
        path = os.path.join(target["open_directory"], secrets.token_hex(8))
        with open(path, "x"):
            os.unlink(path)
        return "made a file"

    def nameless(directory):
        def make():
            os.close(os.open(directory, os.O_TMPFILE | os.O_WRONLY, 0o600))
            return "a file can be made"

        return make

    def opening(path):
        def go():
            os.close(os.open(path, os.O_WRONLY))
            return "opens for writing"

        return go

    return attempt(
        {
            "the open directory": in_open_directory,
            **{directory: nameless(directory) for directory in SHARED},
            **{path: opening(path) for path in PROGRAMS},
        }
    )
