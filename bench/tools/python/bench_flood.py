"""A tool that does nothing but tell how it is, as fast as it can."""

import time

from secure_tool_runtime import ToolContext


def flood(seconds: float, ctx: ToolContext) -> dict:
    end = time.monotonic() + seconds
    told = 0
    while time.monotonic() < end:
        ctx.send_status("working")
        told += 1
    return {"told": told}
