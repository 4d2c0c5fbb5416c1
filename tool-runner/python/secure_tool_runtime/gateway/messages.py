"""Messages of the gateway's channel. See tool-runner/PROTOCOL.md, "Tools of a program"."""

import json

from .requests import step_results
from .results import ToolCallError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The worker closes the channel at a line beyond these.
REQUEST_MAX_BYTES = 1024 * 1024
REQUEST_MAX_LEVELS = 100
REQUEST_MAX_VALUES = 250_000

# `json.dumps` makes one for each text.
_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def line_of(message: "dict[str, Any]") -> bytes:
    """Raises TypeError or ValueError for what JSON lacks."""
    text = _encoder.encode(message)
    # UTF-8 has no lone surrogate; Python's backslash form is JSON's escape.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def request_line(kind: str, identifier: str, payload: "dict[str, Any]") -> bytes:
    """As line_of. Raises ToolCallError INVALID_REQUEST for what the worker does not accept."""
    try:
        line = line_of({"type": kind, "id": identifier, "payload": payload})
    except RecursionError:
        raise _too_many(REQUEST_MAX_LEVELS, "levels") from None
    if len(line) > REQUEST_MAX_BYTES:
        text = f"The request has {len(line)} bytes, more than the {REQUEST_MAX_BYTES} that are accepted"
        raise ToolCallError("INVALID_REQUEST", f"{text}; large data can be saved as an artifact")
    # Each level takes one of these, and each value but the first.
    if sum(map(line.count, (b",", b"{", b"["))) > REQUEST_MAX_LEVELS:
        _check_bounds(line)
    return line


def _check_bounds(line: bytes) -> None:
    """Counts as the worker does: commas and containers."""
    marks = b"".join(line.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    if 1 + sum(map(marks.count, (b",", b"{", b"["))) > REQUEST_MAX_VALUES:
        raise _too_many(REQUEST_MAX_VALUES, "values")
    depth = 0
    for mark in marks:
        if mark in b"{[":
            depth += 1
            if depth > REQUEST_MAX_LEVELS:
                raise _too_many(REQUEST_MAX_LEVELS, "levels")
        elif mark in b"}]":
            depth -= 1


def _too_many(bound: int, what: str) -> ToolCallError:
    text = f"The request has more than the {bound} {what} that are accepted"
    return ToolCallError("INVALID_REQUEST", text)


def payload_of(answer: "dict[str, Any] | None") -> "dict[str, Any]":
    """The payload of a response. Raises ToolCallError for any other answer."""
    if answer is None or answer["type"] == "closed":
        raise closed()
    payload: "dict[str, Any]" = answer["payload"]
    if answer["type"] == "response":
        return payload
    raise ToolCallError(
        str(payload.get("code")),
        str(payload.get("error")),
        retryable=payload.get("retryable") is True,
        data=payload.get("data"),
        op=payload.get("op"),
        steps=step_results(payload.get("stepResults", [])),
    )


def closed() -> ToolCallError:
    return ToolCallError("GATEWAY_CLOSED", "The channel to the worker's gateway is closed")
