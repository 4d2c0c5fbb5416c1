"""Awaitables of a tool, which the end of the call cancels."""

from secure_tool_runtime import ToolContext


def is_awaitable(value: object) -> bool:
    return hasattr(type(value), "__await__")


def awaited(value: object, context: ToolContext) -> object:
    """What an awaitable comes to, in an event loop of its own. SIGTERM cancels its task."""
    import asyncio

    return asyncio.run(finished(value, context.on_cancel))


async def finished(value: object, on_cancel: object) -> object:
    """What an awaitable comes to. `on_cancel` is given what cancels it, in any thread."""
    import asyncio

    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def cancel() -> None:
        try:
            loop.call_soon_threadsafe(task.cancel)
        except RuntimeError:
            pass  # The tool has ended, and the loop with it.

    on_cancel(cancel)
    return await value
