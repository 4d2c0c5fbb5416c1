"""Values inside a tool's result that JSON does not know, as values that it knows."""


def plain(value: object, otherwise: object = str) -> object:
    """Members of an object, numbers of numpy, `otherwise` of anything else. Raises TypeError for
    values that are still to come.
    """
    problem = pending_kind(value)
    if problem:
        raise TypeError(f"it holds {problem}")
    members = members_of(value)
    if members is not None:
        return members
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return value.tolist()
    return otherwise(value)


def members_of(value: object) -> object:
    """What a pydantic model dumps, the fields of a dataclass, or None."""
    if callable(getattr(type(value), "model_dump", None)):
        return value.model_dump()
    if hasattr(type(value), "__dataclass_fields__"):
        import dataclasses

        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def pending_kind(value: object) -> "str | None":
    """What a generator, an iterator or a coroutine is, and its remedy; None for other values."""
    kind = type(value)
    if hasattr(kind, "__next__") or hasattr(kind, "__anext__"):
        return f"a {kind.__name__}, whose values are still to come; make a list of them"
    if hasattr(kind, "__await__"):
        return f"a {kind.__name__}, whose value is still to come; await it"
    return None
