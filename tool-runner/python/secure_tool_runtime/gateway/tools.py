"""What a tool calls others by: `tools`, which is `ctx.tools`, too."""

import _thread
import os

from secure_tool_runtime import gateway

from . import requests
from .results import ChainResult, ToolCallError, ToolCallResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeVar

    from .channel import Channel
    from .requests import Steps

    _Result = TypeVar("_Result")


class _Gateway:
    """The gateway of this process's call, opened at its first use."""

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._channel: "Channel | None" = None

    def channel(self) -> "Channel":
        """Raises ToolCallError without a gateway, RuntimeError in a forked process."""
        given = gateway.of_call
        if given is None:
            raise ToolCallError("NOT_ALLOWED", "The tool's manifest entry has no gateway")
        place, pid, max_calls = given
        if os.getpid() != pid:
            raise RuntimeError("a process that a tool has forked cannot call other tools")
        with self._lock:
            if self._channel is None:
                # Programs have `tools` without using it, and this takes 9 ms.
                from .channel import Channel, connect

                descriptor = place if isinstance(place, int) else connect(place)
                self._channel = Channel(descriptor, max_calls)
            return self._channel


_gateway = _Gateway()


def _waited(steps: "Steps[_Result]") -> "_Result":
    try:
        request = next(steps)
        while True:
            request = steps.send(_gateway.channel().ask(*request))
    except StopIteration as end:
        result: "_Result" = end.value
        return result


async def _awaited(steps: "Steps[_Result]") -> "_Result":
    try:
        request = next(steps)
        while True:
            request = steps.send(await _gateway.channel().ask_awaiting(*request))
    except StopIteration as end:
        result: "_Result" = end.value
        return result


class SyncTools:
    """`tools.sync`: the same for code that does not await. Threads may share it."""

    __slots__ = ()

    def call(self, tool: str, args: "dict[str, Any] | None" = None) -> ToolCallResult:
        """As in Tools."""
        return _waited(requests.call(tool, args))

    def chain(self, steps: "Sequence[dict[str, Any]]") -> ChainResult:
        """As in Tools."""
        return _waited(requests.chain(steps))

    def search(self, query: str, limit: int = 10) -> "list[dict[str, Any]]":
        """As in Tools."""
        return _waited(requests.search(query, limit))

    def namespaces(self) -> "list[str]":
        """As in Tools."""
        return _waited(requests.namespaces())

    def describe(self, tool: str, level: str = "full") -> "dict[str, Any]":
        """As in Tools."""
        return _waited(requests.describe(tool, level))

    def examples(self, tool: str, max: int = 3) -> "list[dict[str, Any]]":
        """As in Tools."""
        return _waited(requests.examples(tool, max))

    def load_artifact(self, filename: str, version: "int | None" = None) -> bytes:
        """As in Tools."""
        return _waited(requests.load_artifact(filename, version))

    def __getattr__(self, name: str) -> "SyncToolName":
        return SyncToolName(self, _part(name))


class Tools:
    """Other tools of the worker: those that the manifest allows this one to call.

    `await tools.call("sales:query", {"region": "West"})`, or `await tools.sales.query(region="West")`.
    Each method raises ToolCallError; NOT_ALLOWED for a tool whose manifest entry has no gateway. A
    cancelled task cancels its call. Threads may share it; a process that the tool forks may not use
    it, and gets a RuntimeError.
    """

    __slots__ = ()

    @property
    def sync(self) -> SyncTools:
        """The same for code that does not await. In an event loop, it holds up all tasks."""
        return SyncTools()

    async def call(self, tool: str, args: "dict[str, Any] | None" = None) -> ToolCallResult:
        """What a tool returns for arguments by name. `namespace:name`, or the name of a tool that
        has no namespace.
        """
        return await _awaited(requests.call(tool, args))

    async def chain(self, steps: "Sequence[dict[str, Any]]") -> ChainResult:
        """Calls tools one after the other, and returns what the last one returns.

        A step is `{"tool": …, "args": {…}, "use_previous": True}`; with the last, the tool gets the
        result before it as its argument `previous`. Stops at the first error, whose `steps` are the
        results so far.
        """
        return await _awaited(requests.chain(steps))

    async def search(self, query: str, limit: int = 10) -> "list[dict[str, Any]]":
        """Tools that fit the words, the best first: `id`, `name`, `namespace`,
        `short_description`, `tags`.
        """
        return await _awaited(requests.search(query, limit))

    async def namespaces(self) -> "list[str]":
        """The namespaces of the tools."""
        return await _awaited(requests.namespaces())

    async def describe(self, tool: str, level: str = "full") -> "dict[str, Any]":
        """What is known of a tool: `summary`; with the levels schema and full also `parameters` and
        `returns`, JSON Schemas; with full also `notes` and `examples`.
        """
        return await _awaited(requests.describe(tool, level))

    async def examples(self, tool: str, max: int = 3) -> "list[dict[str, Any]]":
        """Calls of a tool to learn from: `title`, `description`, `args`, `result_hint`."""
        return await _awaited(requests.examples(tool, max))

    async def load_artifact(self, filename: str, version: "int | None" = None) -> bytes:
        """The content of an artifact of the call's session, such as one that a tool has created;
        its latest version unless given.
        """
        return await _awaited(requests.load_artifact(filename, version))

    def __getattr__(self, name: str) -> "ToolName":
        return ToolName(self, _part(name))


class ToolName:
    """A tool as an attribute: `tools.name(…)`, or `tools.namespace.name(…)`."""

    __slots__ = ("_id", "_tools")

    def __init__(self, tools: Tools, identifier: str) -> None:
        self._tools = tools
        self._id = identifier

    def __getattr__(self, name: str) -> "ToolName":
        return ToolName(self._tools, _part(name, self._id))

    async def __call__(self, /, **args: "Any") -> ToolCallResult:
        return await self._tools.call(self._id, args)


class SyncToolName:
    """The same without `await`."""

    __slots__ = ("_id", "_tools")

    def __init__(self, tools: SyncTools, identifier: str) -> None:
        self._tools = tools
        self._id = identifier

    def __getattr__(self, name: str) -> "SyncToolName":
        return SyncToolName(self._tools, _part(name, self._id))

    def __call__(self, /, **args: "Any") -> ToolCallResult:
        return self._tools.call(self._id, args)


def _part(name: str, namespace: str = "") -> str:
    # What others ask of any object, such as `copy`, is no tool. A tool has one namespace.
    if name.startswith("_") or ":" in namespace:
        raise AttributeError(name)
    return f"{namespace}:{name}" if namespace else name


tools: Tools = Tools()
