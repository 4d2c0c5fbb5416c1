"""Which names an output artifact can have."""

# NAME_MAX of the file systems that artifacts lie on.
_MAX_BYTES = 255


def check_filename(filename: str) -> None:
    """Raises TypeError for what is no text, ValueError for a name that no artifact can have."""
    if not isinstance(filename, str):
        raise TypeError(f"an artifact's filename must be str, not {type(filename).__name__}")
    problem = _filename_problem(filename)
    if problem:
        raise ValueError(f"artifact filename {filename[:80]!r} {problem}")


def _filename_problem(filename: str) -> "str | None":
    if filename == "":
        return "is empty"
    if filename in (".", ".."):
        return "names a directory"
    if "/" in filename or "\\" in filename:
        return "contains a path separator; artifacts have plain names"
    if any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in filename):
        return "contains a control character"
    try:
        size = len(filename.encode("utf-8"))
    except UnicodeEncodeError:
        return "contains a lone surrogate, which no file name can hold"
    if size > _MAX_BYTES:
        return f"is {size} bytes long; at most {_MAX_BYTES} are possible"
    return None
