"""Messages of the gateway's channel. See tool-runner/PROTOCOL.md, "Tools of a program"."""

import json

from .requests import step_results
from .results import ToolCallError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REQUEST_MAX_BYTES = 1024 * 1024  # The worker closes the channel at a longer line.


def line_of(message: "dict[str, Any]") -> bytes:
    """Raises TypeError or ValueError for what JSON lacks."""
    text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # UTF-8 has no lone surrogate; Python's backslash form is JSON's escape.
    return text.encode("utf-8", "backslashreplace") + b"\n"


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
