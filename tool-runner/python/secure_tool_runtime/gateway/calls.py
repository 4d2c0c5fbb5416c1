"""Requests of the channel, and how many of them are calls at a time."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_CALLS = ("run_tool", "run_chain")


class Request:
    """A request, and its answer once that is there."""

    __slots__ = ("answer", "end", "id", "is_call", "line", "wake")

    def __init__(self, identifier: str, kind: str, line: bytes, wake: "Callable[[], None]") -> None:
        self.id: str = identifier
        self.is_call: bool = kind in _CALLS
        self.line: bytes = line
        self.end: int = 0  # Where its line ends in all that is sent; 0 before that.
        self.wake: "Callable[[], None]" = wake
        self.answer: "dict[str, Any] | None" = None


class CallQueue:
    """Lets calls onto the channel in their order, a number of them at a time. The worker reads no
    `cancel` behind a call that waits there for others. Not safe for threads.
    """

    def __init__(self, max_calls: int) -> None:
        self._max_calls = max_calls
        self._running: "set[str]" = set()
        self._waiting: "dict[str, Request]" = {}  # The longest first.

    def enter(self, request: Request) -> bool:
        """Whether the request may be sent now. Otherwise a later `answered` returns it."""
        if not request.is_call:
            return True
        if len(self._running) >= self._max_calls:
            self._waiting[request.id] = request
            return False
        self._running.add(request.id)
        return True

    def answered(self, identifier: str) -> "Request | None":
        """The call to send after the answer to a request, which may have been cancelled."""
        if identifier not in self._running:
            return None
        self._running.remove(identifier)
        if not self._waiting:
            return None
        following = self._waiting.pop(next(iter(self._waiting)))
        self._running.add(following.id)
        return following

    def withdraw(self, request: Request) -> bool:
        """Drops a call that waits. False for a request that may be sent."""
        return self._waiting.pop(request.id, None) is not None
