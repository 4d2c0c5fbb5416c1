"""What JSON does not know, as something that it knows: for the values inside a tool's result."""


def plain(value: object) -> object:
    """A value for JSON: an object's members, numpy's numbers as numbers, and the text of all else.

    Raises TypeError for what has its values still to give, as nobody would ever ask for them.
    """
    problem = still_to_come(value)
    if problem:
        raise TypeError(f"it holds {problem}")
    members = members_of(value)
    if members is not None:
        return members
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def members_of(value: object) -> object:
    """
    What a pydantic model dumps, or the fields of a dataclass as a dict; None for anything else.
    """
    if callable(getattr(type(value), "model_dump", None)):
        return value.model_dump()
    if hasattr(type(value), "__dataclass_fields__"):
        import dataclasses

        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def still_to_come(value: object) -> "str | None":
    """
    What a generator, an iterator or a coroutine is, and what to do about it; None for anything
    else.
    """
    kind = type(value)
    if hasattr(kind, "__next__") or hasattr(kind, "__anext__"):
        return f"a {kind.__name__}, whose values are still to come; make a list of them"
    if hasattr(kind, "__await__"):
        return f"a {kind.__name__}, whose value is still to come; await it"
    return None
