"""Tools that call others by their gateway, and tell how long that took them, in milliseconds."""

import asyncio
import os
import select
import time

from secure_tool_runtime import ToolContext, gateway
from secure_tool_runtime.gateway.tools import Tools

_READY_MS = 50


async def lists(ctx: ToolContext, count: int) -> dict:
    """The median of so many questions for the namespaces, after one that opens the channel."""
    await ctx.tools.namespaces()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        await ctx.tools.namespaces()
        times.append((time.perf_counter() - start) * 1000)
    return {"ms": sorted(times)[count // 2]}


async def calls(ctx: ToolContext, tool: str, count: int, pause: float = 0) -> dict:
    """So many calls one after the other, after a pause of seconds and a question that opens the
    channel.
    """
    await asyncio.sleep(pause)
    await ctx.tools.namespaces()
    start = time.perf_counter()
    for _ in range(count):
        await ctx.tools.call(tool)
    return {"ms": (time.perf_counter() - start) * 1000}


def works(seconds: float) -> dict:
    """Holds its slot, and tells from when to when."""
    start = time.monotonic()
    time.sleep(seconds)
    return {"span": [start, time.monotonic()]}


def works_by_calls(ctx: ToolContext, tool: str, count: int, seconds: float) -> dict:
    """All spans of `work_by_calls`."""
    return {"spans": work_by_calls(ctx.tools, tool, count, seconds)}


def work_by_calls(tools: Tools, tool: str, count: int, seconds: float) -> list:
    """For tools and programs: calls `works`, and does the same between the calls."""
    spans = []
    for _ in range(count):
        spans.append(works(seconds)["span"])
        spans.append(tools.sync.call(tool, {"seconds": seconds})["span"])
    spans.append(works(seconds)["span"])
    return spans


def floods(ctx: ToolContext, request: str, count: int, seconds: float) -> dict:
    """Sends a line as often as it says, each with an id of its own, and reads no answer."""
    descriptor = gateway.of_call[0]
    os.set_blocking(descriptor, False)
    unsent = memoryview("".join(request % n for n in range(count)).encode())
    total = len(unsent)
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    end = time.monotonic() + seconds
    while unsent and time.monotonic() < end:
        if poll.poll(_READY_MS):
            unsent = unsent[os.write(descriptor, unsent) :]
    return {"sent": total - len(unsent), "unsent": len(unsent)}
