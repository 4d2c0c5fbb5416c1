"""The tools that attacks on gateways call: some may be called, and others may not."""

import os
import subprocess
import sys

from support.staying import staying_command
from victims_secret import TOKEN


def called(ctx, **_args):
    """For whom it runs, what it sees of the host, and what nobody else could say."""
    return {"user": ctx.user_id, "etc": sorted(os.listdir("/etc")), "token": TOKEN}


def stays(name):
    """Runs on for longer than its caller."""
    subprocess.run(staying_command(name, sys.stderr.fileno()))
    return {}
