"""Calls of nothing, which a runner makes while it is idle.

The interpreter specializes its code by them (PEP 659), and a child of a template copies each page
that a call writes to for the first time: then no caller waits for either.
"""

import os
import sys

from .. import exit
from ..awaiting import finished
from ..json_codec import encode
from ..protocol import result_document
from ..runner import context_of, result_of, run_tool, understand
from .wake_channel import RehearsalChannel

_CO_ASYNC = 0x80 | 0x200  # Flags of code objects: CO_COROUTINE, CO_ASYNC_GENERATOR.


def rehearse(module: str) -> None:
    """Runs the steps of a call, but for its files. Without a module, it is a call of a program."""
    with RehearsalChannel() as channel:
        call = understand(channel.take(encode({**_NOTHING, "module": __name__})))
        context = context_of(call)
        if module:
            result = result_of(run_tool(call, context), context)
        else:
            from ..programs.program import rehearse

            result = rehearse(context)
        channel.give(result_document(result, context.described_outputs(), call.max_result_bytes))
        channel.finish()
    exit.rehearse()


def rehearse_waiting(awaits: bool, has_gateway: bool) -> None:
    """Waits in an event loop, where functions of the module do, and for another tool, where it may
    call one.
    """
    if awaits:
        import asyncio

        if not hasattr(asyncio, "Runner"):
            return  # Before Python 3.11.
        # `asyncio.run` would say of the thread that it has had an event loop.
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            call = _call_awaiting() if has_gateway else _nothing_awaiting()
            runner.run(finished(call, _nobody_cancels))
    elif has_gateway:
        with _AnsweredGateway() as tools:
            tools.sync.call("nothing")


def has_functions_that_await(module: str) -> bool:
    """Whether functions of the module, or of its classes, are coroutines or such generators."""
    if not module:
        return False
    members = list(vars(sys.modules[module]).values())
    classes = [each for each in members if isinstance(each, type) and each.__module__ == module]
    members += [each for owner in classes for each in vars(owner).values()]
    functions = [each for each in members if isinstance(each, type(_nothing))]
    return any(each.__code__.co_flags & _CO_ASYNC for each in functions)


def _nothing(text: str) -> dict:
    return {"text": text}


async def _nothing_awaiting() -> None:
    pass


async def _call_awaiting() -> None:
    with _AnsweredGateway() as tools:
        await tools.call("nothing")


def _nobody_cancels(_cancel: object) -> None:
    pass


class _AnsweredGateway:
    """A gateway that has answered its first request already."""

    def __enter__(self) -> object:
        from _socket import socketpair

        from secure_tool_runtime import gateway
        from secure_tool_runtime.gateway.tools import tools

        self._own, other = socketpair()
        self._other = other
        other.send(_ANSWER)
        gateway.of_call = (self._own.fileno(), os.getpid(), 1)
        return tools

    def __exit__(self, *_: object) -> None:
        from secure_tool_runtime import gateway
        from secure_tool_runtime.gateway.tools import forget_channel

        gateway.of_call = None
        forget_channel()
        self._own.close()
        self._other.close()


# A call of `_nothing`, with all that a worker says of one; no path leads anywhere.
_NOTHING = {
    **{"function": "_nothing", "args": {"text": ""}, "tool_config": {}},
    **{"artifact_paths": {}, "artifact_metadata": {}, "deadline_ms": 1_700_000_000_000},
    **dict.fromkeys(("output_dir", "result_file", "status_pipe", "tools_dir"), "/dev/null/none"),
    **dict.fromkeys(("user_id", "session_id", "app_name", "task_id"), "nobody"),
}
_ANSWER = b'{"type":"response","id":"1","payload":{"structured":{},"artifacts":[]}}\n'
