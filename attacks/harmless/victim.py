"""
A call that other calls look for: puts a secret wherever it can, says so, and waits to be ended.
"""

import time


async def victim(token, ctx):
    for path in ("data", "output/data", "/tmp/neighbour", "/dev/shm/neighbour"):
        with open(path, "w") as file:
            file.write("neighbour " + token)
    ctx.send_status("ready")
    time.sleep(600)
