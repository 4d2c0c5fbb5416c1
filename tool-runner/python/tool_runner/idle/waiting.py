"""What calls wait by, rehearsed in a template and in its children: see rehearsal.py."""

import sys

from ..awaiting import finished

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

_CO_ASYNC = 0x80 | 0x200  # Flags of code objects: CO_COROUTINE, CO_ASYNC_GENERATOR.
_ANSWER = b'{"type":"response","id":"1","payload":{"structured":{},"artifacts":[]}}\n'


class WaitingRehearsal:
    """Rehearses how functions of a module wait: in an event loop of asyncio, and for another tool
    where they may call one. Not again after a failure, since calls can do without.
    """

    def __init__(self, module: str, has_gateway: bool) -> None:
        self._awaits = has_functions_that_await(module)
        self._has_gateway = has_gateway
        self._has_failed = False

    def rehearse(self) -> None:
        if self._has_failed:
            return
        try:
            if self._awaits:
                _run(_call_awaited() if self._has_gateway else _nothing())
            elif self._has_gateway:
                _call()
        except BaseException:
            self._has_failed = True


def has_functions_that_await(module: str) -> bool:
    """Whether functions of the module, or of its classes, are coroutines or such generators."""
    try:
        return bool(module) and any(map(_awaits, _functions_of(module)))
    except BaseException:
        return False  # A class of the tool has its own idea of what it has.


def _functions_of(module: str) -> "Generator[object]":
    # What runs no code of the tool: `isinstance` may.
    for member in list(vars(sys.modules[module]).values()):
        yield member
        if issubclass(type(member), type) and vars(member).get("__module__") == module:
            for each in vars(member).values():
                yield each.__func__ if type(each) in (staticmethod, classmethod) else each


def _awaits(function: object) -> bool:
    return type(function) is type(_awaits) and bool(function.__code__.co_flags & _CO_ASYNC)


def _run(coroutine: object) -> None:
    """As `asyncio.run`, which also logs, counts tasks in their names, and says of the thread that
    it has had an event loop.
    """
    import asyncio
    from asyncio.log import logger

    if not hasattr(asyncio, "Runner"):
        coroutine.close()  # Before Python 3.11.
        return

    def named(loop: object, awaited: object, **more: object) -> object:
        return asyncio.Task(awaited, loop=loop, **{**more, "name": "rehearsal"})

    was_disabled, logger.disabled = logger.disabled, True
    try:
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.get_loop().set_task_factory(named)
            runner.run(finished(coroutine, _nobody_cancels))
    finally:
        logger.disabled = was_disabled


async def _nothing() -> None:
    pass


def _nobody_cancels(_cancel: object) -> None:
    pass


def _call() -> None:
    from secure_tool_runtime.gateway import requests

    steps = requests.call("nothing", None)
    with _AnsweredChannel() as channel:
        _end(steps, channel.ask(*next(steps)))


async def _call_awaited() -> None:
    from secure_tool_runtime.gateway import requests

    steps = requests.call("nothing", None)
    with _AnsweredChannel() as channel:
        _end(steps, await channel.ask_awaiting(*next(steps)))


def _end(steps: object, payload: dict) -> None:
    try:
        steps.send(payload)
    except StopIteration:
        pass


class _AnsweredChannel:
    """A gateway's channel, on which the first request is answered already."""

    def __enter__(self) -> object:
        from _socket import socketpair

        from secure_tool_runtime.gateway.channel import Channel

        self._own, self._other = socketpair()
        self._other.send(_ANSWER)
        return Channel(self._own.fileno(), 1)

    def __exit__(self, *_: object) -> None:
        self._own.close()
        self._other.close()
