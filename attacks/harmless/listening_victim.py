"""
The call whose network attacks look for: listens where its secret says, sends a status, and answers
with the secret.
"""

import asyncio

from support.listed import victim_port, victim_socket


async def victim(token, ctx):
    async def answer(reader, writer):
        writer.write(token.encode())
        writer.close()

    servers = [
        await asyncio.start_server(answer, "0.0.0.0", victim_port(token)),
        await asyncio.start_unix_server(answer, "\0" + victim_socket(token)),
    ]
    ctx.send_status("ready")
    # Unlike time.sleep, it ends as soon as the call is cancelled.
    await asyncio.sleep(600)
    del servers
