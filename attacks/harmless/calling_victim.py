"""
The call whose channel attacks look for: gives it to whoever connects where its secret says, and
sends a status.
"""

import asyncio
import socket

from support.channel import own_channel, victim_socket


async def victim(token, ctx):
    channel = own_channel({}).stream
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("\0" + victim_socket(token))
    listening.listen()
    listening.setblocking(False)
    ctx.send_status("ready")
    loop = asyncio.get_running_loop()
    # Unlike those of the module socket, its waits end as soon as the call is cancelled.
    while True:
        connection, _ = await loop.sock_accept(listening)
        with connection:
            socket.send_fds(connection, [b"x"], [channel.fileno()])
