"""
Statuses with details: the text that every agent reads, and the members that say the same as data.
See status.pipe in tool-runner/PROTOCOL.md.
"""

import math

from .status_pipe import quote

_LEVELS = ("debug", "info", "warning", "error")
# Characters of a partial result that its text quotes.
_QUOTED_CHARACTERS = 100
# Larger integers are not exact in JSON's readers.
_MAX_EXACT = 2**53


def progress_status(done: float, total: "float | None", message: "str | None") -> "tuple[str, str]":
    """Text and JSON members of a progress. Raises what `float` does, and ValueError."""
    done_text = _amount(done)
    members = f'"done": {done_text}'
    text = done_text
    if total is not None:
        total_text = _amount(total)
        members += f', "total": {total_text}'
        text += f" of {total_text}"
    if message is not None:
        members += f', "message": {quote(str(message))}'
        text = f"{message} ({text})"
    return text, f'"progress": {{{members}}}'


def log_status(level: str, text: str, fields: "dict[str, object]") -> "tuple[str, str]":
    """Text and JSON members of a line of the log."""
    if level not in _LEVELS:
        level = "warning" if level == "warn" else "info"
    members = f'"level": "{level}", "text": {quote(str(text))}'
    shown = str(text)
    if fields:
        shown += " (" + ", ".join(f"{name}={value}" for name, value in fields.items()) + ")"
        pairs = ", ".join(f"{quote(name)}: {_scalar(value)}" for name, value in fields.items())
        members += f', "fields": {{{pairs}}}'
    if level != "info":
        shown = f"{level.capitalize()}: {shown}"
    return shown, f'"log": {{{members}}}'


def partial_status(value: object) -> "tuple[str, str]":
    """
    Text and JSON members of a partial result. Raises TypeError, ValueError or RecursionError for
    what JSON cannot express, and for None.
    """
    if value is None:
        raise ValueError("None is no partial result")
    import json

    document = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    cut = "…" if len(document) > _QUOTED_CHARACTERS else ""
    text = f"Partial result: {document[:_QUOTED_CHARACTERS]}{cut}"
    return text, f'"partial_result": {document}'


def _amount(value: float) -> str:
    number = float(value)
    if not 0 <= number < math.inf:
        raise ValueError("progress is counted in finite numbers from 0")
    return repr(int(number) if number.is_integer() and number <= _MAX_EXACT else number)


def _scalar(value: object) -> str:
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if type(value) is int and abs(value) <= _MAX_EXACT:
        return repr(value)
    if type(value) is float and math.isfinite(value):
        return repr(value)
    return quote(str(value))
