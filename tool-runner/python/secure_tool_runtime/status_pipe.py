"""The writing end of a call's status pipe."""

import os

try:
    from _json import encode_basestring as quote
except ImportError:
    from json.encoder import encode_basestring as quote

# As in __init__.py: type checkers take it for true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# POSIX writes up to PIPE_BUF bytes to a pipe in one piece; 4096 on Linux (pipe(7)).
_STATUS_LINE_MAX_BYTES = 4096


class StatusPipe:
    """The writing end of status.pipe: one line, one write.

    The descriptor is opened once and shared with forked children. A line is at most PIPE_BUF bytes
    and written by a single write(2), so lines of several threads and processes never mix.
    """

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: "str | None") -> None:
        self._path = path
        self._descriptor = self._open()

    def __reduce__(self) -> "tuple[object, ...]":
        # A descriptor's number means something else in a process that was spawned, not forked: open
        # anew there.
        return (StatusPipe, (self._path,))

    def send(self, message: str) -> bool:
        return self._write(_status_line(message))

    def send_described(
        self, describe: "Callable[..., tuple[str, str]]", *of: object, is_whole: bool = False
    ) -> bool:
        """
        Sends the text and the details that `describe` makes. Where both do not fit into a line,
        sends the text alone, or nothing if the details are what counts.
        """
        try:
            message, details = describe(*of)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return False
        line = _encode_status(message, ", " + details)
        if len(line) > _STATUS_LINE_MAX_BYTES:
            return False if is_whole else self.send(message)
        return self._write(line)

    def _write(self, line: bytes) -> bool:
        if self._descriptor is None:
            self._descriptor = self._open()
        if self._descriptor is None:
            return False
        try:
            os.write(self._descriptor, line)
        except OSError:
            return False
        return True

    def _open(self) -> "int | None":
        if self._path is None:
            return None
        try:
            # Without O_NONBLOCK, opening a pipe that nobody reads waits for ever; with it, that is
            # ENXIO.
            descriptor = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return None
        os.set_blocking(descriptor, True)
        return descriptor


def _status_line(message: str) -> bytes:
    line = _encode_status(message)
    return line if len(line) <= _STATUS_LINE_MAX_BYTES else _encode_status(_fitting(message) + "…")


def _fitting(message: str) -> str:
    """The longest beginning of a message that still leaves room for "…" in a status line."""
    room = _STATUS_LINE_MAX_BYTES - len(_encode_status("…"))
    for end, character in enumerate(message):
        room -= len(_utf8(quote(character))) - len('""')
        if room < 0:
            return message[:end]
    return message


def _encode_status(message: str, details: str = "") -> bytes:
    return _utf8('{"status": ' + quote(message) + details + "}\n")


def _utf8(json_text: str) -> bytes:
    # A lone surrogate has no UTF-8; inside a JSON string, Python's backslash form of it is JSON's
    # escape.
    return json_text.encode("utf-8", "backslashreplace")
