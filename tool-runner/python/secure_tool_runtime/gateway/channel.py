"""The channel to the worker's gateway: requests of threads and event loops, answers in any order.

There is no thread for it: that would take 64 MiB of the address space that the sandbox may have.
One of the threads that wait reads for all, or an event loop where none waits.
"""

import json
import os
import select
import stat
import threading

from .calls import CallQueue, Request
from .messages import closed, line_of, payload_of, request_line
from .results import ToolCallError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from typing import Any

ANSWER_MAX_BYTES = 32 * 1024 * 1024
# More than malloc takes from the heap costs ten times the read.
_READ_BYTES = 64 * 1024


def connect(path: str) -> int:
    """The descriptor of a channel that is no inherited one; closed in programs that are executed.

    Raises ToolCallError.
    """
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(path)
        except OSError:
            raise closed() from None
        return connection.detach()


class Channel:
    """Owns the descriptor of a stream socket. Safe for threads; of this process alone."""

    def __init__(self, descriptor: int, max_calls: int) -> None:
        """Has at most `max_calls` calls without an answer on the socket.

        Raises ToolCallError where the descriptor has been closed.
        """
        try:
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                raise closed()
            os.set_blocking(descriptor, False)
        except OSError:
            raise closed() from None
        self._descriptor = descriptor
        self._changed = threading.Condition()  # Guards what follows.
        self._requests: "dict[str, Request]" = {}
        self._calls = CallQueue(max_calls)
        self._last_id = 0
        self._is_closed = False
        self._has_reader = False  # Whether a thread that waits reads.
        self._loops: "dict[AbstractEventLoop, int]" = {}  # Requests of each event loop.
        self._unsent = bytearray()
        self._sent_bytes = 0
        self._pieces: "list[bytes]" = []  # Of the line that arrives.
        self._pieces_bytes = 0

    def ask(self, kind: str, payload: "dict[str, Any]") -> "dict[str, Any]":
        """The payload of the response. Raises ToolCallError, and TypeError or ValueError for a
        payload that JSON lacks. An exception meanwhile, as of a signal's handler, cancels it.
        """
        with self._changed:
            request = self._add(kind, payload, self._changed.notify_all)
            try:
                self._flush()
                while request.answer is None:
                    self._wait(request)
            finally:
                self._finish(request)
        return payload_of(request.answer)

    async def ask_awaiting(self, kind: str, payload: "dict[str, Any]") -> "dict[str, Any]":
        """As `ask`, in an event loop of asyncio. The task's cancellation cancels it."""
        from asyncio import get_running_loop

        loop = get_running_loop()
        thread = threading.get_ident()
        answered = loop.create_future()

        def changed() -> None:
            with self._changed:
                self._flush()
                self._write_later(loop)
            if request.answer is not None and not answered.done():
                answered.set_result(None)

        def wake() -> None:
            if threading.get_ident() == thread:
                return changed()
            try:
                loop.call_soon_threadsafe(changed)
            except RuntimeError:
                pass  # The loop is closed, and nobody awaits it.

        with self._changed:
            request = self._add(kind, payload, wake)
            self._join(loop)
        try:
            with self._changed:
                self._flush()
                self._write_later(loop)
            await answered
        finally:
            with self._changed:
                self._finish(request)
                self._leave(loop)
        return payload_of(request.answer)

    def _add(self, kind: str, payload: "dict[str, Any]", wake: "Callable[[], None]") -> Request:
        """A request whose line is to be sent, of a call maybe later."""
        self._last_id += 1
        identifier = str(self._last_id)
        request = Request(identifier, kind, request_line(kind, identifier, payload), wake)
        if self._is_closed:
            raise closed()
        self._requests[identifier] = request
        if self._calls.enter(request):
            self._send(request)
        return request

    def _send(self, request: Request) -> None:
        self._unsent += request.line
        request.line = b""
        request.end = self._sent_bytes + len(self._unsent)

    def _finish(self, request: Request) -> None:
        """Cancels a request that has no answer. What the worker still says of it is dropped."""
        if self._requests.pop(request.id, None) is None or self._calls.withdraw(request):
            return
        self._unsent += line_of({"type": "cancel", "id": request.id})
        self._flush()

    def _wait(self, request: Request) -> None:
        """Until something has changed."""
        if self._has_reader and request.end <= self._sent_bytes:
            self._changed.wait()
        elif self._has_reader:
            # The thread that reads does not look for room for lines of others.
            self._poll()
            self._flush()
        else:
            self._read_for_all(request)

    def _read_for_all(self, request: Request) -> None:
        self._has_reader = True
        try:
            while request.answer is None:
                self._poll()
                self._flush()
                self._receive()
        finally:
            self._has_reader = False
            self._changed.notify_all()

    def _poll(self) -> None:
        """Waits for the socket, without the lock."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN | (select.POLLOUT if self._unsent else 0))
        self._changed.release()
        try:
            poll.poll()
        finally:
            self._changed.acquire()

    def _join(self, loop: "AbstractEventLoop") -> None:
        """Has an event loop read as long as it has requests."""
        if loop not in self._loops:
            self._loops[loop] = 0
            loop.add_reader(self._descriptor, self._on_readable)
        self._loops[loop] += 1

    def _leave(self, loop: "AbstractEventLoop") -> None:
        self._loops[loop] -= 1
        if self._loops[loop] == 0:
            # Not at once: most tasks ask again.
            loop.call_soon(self._stop_reading, loop)
        self._write_later(loop)

    def _stop_reading(self, loop: "AbstractEventLoop") -> None:
        with self._changed:
            if self._loops.get(loop) == 0:
                del self._loops[loop]
                loop.remove_reader(self._descriptor)

    def _write_later(self, loop: "AbstractEventLoop") -> None:
        if self._unsent and not loop.is_closed():
            loop.add_writer(self._descriptor, self._on_writable, loop)

    def _on_readable(self) -> None:
        with self._changed:
            if not self._has_reader:
                self._receive()

    def _on_writable(self, loop: "AbstractEventLoop") -> None:
        with self._changed:
            self._flush()
            if not self._unsent:
                loop.remove_writer(self._descriptor)

    def _flush(self) -> None:
        try:
            while self._unsent:
                sent = os.write(self._descriptor, self._unsent)
                self._sent_bytes += sent
                del self._unsent[:sent]
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno is None:
                raise  # It is of a signal's handler, such as a TimeoutError.
            self._close()

    def _receive(self) -> None:
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno is None:
                raise
            data = b""
        try:
            if not data or not self._take(data):
                self._close()
        except BaseException:
            # A part of what was read is lost, as where there is no memory for it.
            self._close()
            raise

    def _take(self, data: bytes) -> bool:
        """False for what is no answer."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            line = b"".join((*self._pieces, end))
            self._pieces, self._pieces_bytes = [], 0
            if not self._take_line(line):
                return False
        self._pieces.append(rest)
        self._pieces_bytes += len(rest)
        return self._pieces_bytes <= ANSWER_MAX_BYTES

    def _take_line(self, line: bytes) -> bool:
        try:
            message = json.loads(line)
            kind, identifier, payload = message["type"], message["id"], message["payload"]
            if kind not in ("response", "error") or not isinstance(payload, dict):
                return False
            request = self._requests.pop(identifier, None)
        except (ValueError, TypeError, KeyError, RecursionError):
            return False
        if request is not None:
            request.answer = message
            request.wake()
        following = self._calls.answered(identifier)
        if following is not None:
            self._send(following)
            following.wake()  # Its thread or event loop sends it.
        return True

    def _close(self) -> None:
        """Fails the requests. The descriptor stays: others may wait for it."""
        self._is_closed = True
        self._unsent.clear()
        requests, self._requests = self._requests, {}
        for request in requests.values():
            request.answer = {"type": "closed"}
            request.wake()
