"""The tools that attacks on gateways call: some may be called, and others may not."""

import os
import subprocess
import sys

from support.staying import staying_command
from victims_secret import TOKEN


def called(ctx, **_args):
    """For whom it runs, what it sees of the host, and what nobody else could say."""
    files = os.listdir("/etc") if os.path.isdir("/etc") else []
    return {"user": ctx.user_id, "etc": files, "token": TOKEN}


def forwards(ctx, named, args):
    """Calls whatever it is told."""
    return ctx.tools.sync.call(named, args)


def stays(name):
    """Runs on for longer than its caller."""
    subprocess.run(staying_command(name, sys.stderr.fileno()))
    return {}
