"""
The call that attacks look for: writes a secret everywhere it can, sends a status, and sleeps.
"""

import asyncio


async def victim(token, ctx):
    for path in ("data", "output/data", "/tmp/victim", "/dev/shm/victim"):
        with open(path, "w") as file:
            file.write("victim " + token)
    ctx.send_status("ready")
    # Unlike time.sleep, it ends as soon as the call is cancelled.
    await asyncio.sleep(600)
