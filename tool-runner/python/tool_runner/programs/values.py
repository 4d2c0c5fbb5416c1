"""Values of a program as JSON: its own value, and what it displays."""

from ..json_codec import decode, encode
from ..values import plain

# Of a value. The worker reads documents of 100, and there are up to three around it.
_MAX_LEVELS = 97
# Values that a program displays, and bytes of their JSON in all.
_MAX_DISPLAYS = 100
_DISPLAYS_MAX_BYTES = 256 * 1024


class NotJson(TypeError):
    """A value that JSON cannot express. The text says why and may be published."""


def json_copy(value: object) -> object:
    """A copy of a value, as JSON has it. Raises NotJson, and what classes of the program raise."""
    return decode(_json_of(value))


def displaying(displays: list) -> object:
    """The function `display`, which adds copies of its values."""
    room_bytes = _DISPLAYS_MAX_BYTES

    def display(value: object) -> None:
        """Adds a copy of a JSON value to the program's result."""
        nonlocal room_bytes
        try:
            document = _json_of(value)
        except NotJson as error:
            raise TypeError(f"The value is not JSON: {error}") from None
        if len(displays) == _MAX_DISPLAYS or len(document) > room_bytes:
            bounds = f"{_MAX_DISPLAYS} values of {_DISPLAYS_MAX_BYTES} bytes in all"
            raise ValueError(f"A program displays at most {bounds}")
        room_bytes -= len(document)
        displays.append(decode(document))

    return display


def _json_of(value: object) -> bytes:
    try:
        document = encode(value, _plain)
        is_too_deep = _levels(decode(document)) > _MAX_LEVELS
    except RecursionError:
        is_too_deep = True
    except (TypeError, ValueError, OverflowError) as error:
        raise NotJson(str(error)) from None
    if is_too_deep:
        raise NotJson(f"it is nested more than {_MAX_LEVELS} levels deep")
    return document


def _levels(value: object) -> int:
    count, level = 0, [value]
    while True:
        level = [each for each in level if isinstance(each, (dict, list))]
        if not level:
            return count
        count += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]


def _plain(value: object) -> object:
    return plain(value, _other)


def _other(value: object) -> object:
    """Lists of sets, texts of dates. Raises TypeError for anything else."""
    if isinstance(value, (set, frozenset)):
        return list(value)
    if callable(getattr(type(value), "isoformat", None)):
        return value.isoformat()
    kind = type(value).__name__
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"it holds {kind}; save them as an artifact")
    raise TypeError(f"it holds a value of class {kind}")
