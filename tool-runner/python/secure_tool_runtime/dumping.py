"""Models as plain values, and these as what JSON has. As pydantic writes them."""

import enum

_NOT_FINITE = (float("inf"), float("-inf"))
_AS_TEXT = ("UUID", "Decimal", "PurePath", "complex")


def dumped(
    model: object,
    *,
    include: object = None,
    exclude: object = None,
    exclude_none: bool = False,
    exclude_unset: bool = False,
    exclude_defaults: bool = False,
    **_options: object,
) -> "dict[str, object]":
    """The members of a `models.Model`, models inside as dicts. Raises TypeError for a choice of
    members of members.
    """
    chosen, left_out = _names(include), _names(exclude) or ()

    def value_of(value: object) -> object:
        # By a member of `models.Model` alone: that module imports this one.
        if hasattr(type(value), "_fields_set"):
            return members_of(value)
        if isinstance(value, dict):
            return {key: value_of(each) for key, each in value.items()}
        # Subclasses, such as named tuples, are made in ways of their own.
        return type(value)(map(value_of, value)) if type(value) in (list, tuple) else value

    def is_dumped(each: object, name: str, value: object) -> bool:
        default = each._fields[name][1]
        unset = exclude_unset and name not in each.model_fields_set
        none = exclude_none and value is None
        is_default = value == (default() if default is list else default)
        return not (unset or none or (exclude_defaults and is_default))

    def members_of(each: object) -> "dict[str, object]":
        return {name: value_of(value) for name, value in each if is_dumped(each, name, value)}

    members = members_of(model)
    return {
        name: value
        for name, value in members.items()
        if name not in left_out and (chosen is None or name in chosen)
    }


def _names(chosen: object) -> "set[str] | None":
    if isinstance(chosen, dict) and not all(value in (True, ...) for value in chosen.values()):
        raise TypeError("include and exclude choose members of the model itself only")
    return None if chosen is None else set(chosen)


def for_json(value: object) -> object:
    """A value as JSON has it. Raises ValueError for what it cannot express."""
    if isinstance(value, enum.Enum):
        return for_json(value.value)
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return None if value != value or value in _NOT_FINITE else value
    if isinstance(value, (bytes, bytearray)):
        return _utf8(value)
    if isinstance(value, dict):
        return {_key(key): for_json(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)) or hasattr(type(value), "__next__"):
        return [for_json(each) for each in value]
    return _other(value)


def _utf8(value: "bytes | bytearray") -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"Error serializing to JSON: invalid utf-8 from index {error.start}") from None


def _key(key: object) -> str:
    plain = for_json(key)
    if isinstance(plain, bool):
        return "true" if plain else "false"
    return plain if isinstance(plain, str) else str(plain)


def _other(value: object) -> object:
    if callable(getattr(type(value), "model_dump", None)):
        return value.model_dump(mode="json")
    if callable(getattr(value, "isoformat", None)):
        moment = value.isoformat()
        return moment[:-6] + "Z" if moment.endswith("+00:00") else moment
    if callable(getattr(value, "total_seconds", None)):
        return _duration(value)
    if any(each.__name__ in _AS_TEXT for each in type(value).__mro__):
        return str(value).strip("()")
    if hasattr(type(value), "__dataclass_fields__"):
        return {name: for_json(getattr(value, name)) for name in value.__dataclass_fields__}
    raise ValueError(f"Unable to serialize unknown type: {type(value)}")


def _duration(value: object) -> str:
    """ISO 8601: days, and the rest in hours, minutes and seconds."""
    sign = "-" if value.total_seconds() < 0 else ""
    value = abs(value)
    minutes, seconds = divmod(value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{value.microseconds:06}".rstrip("0") if value.microseconds else ""
    parts = [f"{hours}H" if hours else "", f"{minutes}M" if minutes else ""]
    parts.append(f"{seconds}{fraction}S" if seconds or fraction else "")
    time = "".join(parts)
    days = f"{value.days}D" if value.days else ""
    return f"{sign}P{days}{'T' + time if time else ''}" if days or time else "PT0S"
