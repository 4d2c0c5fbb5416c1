"""What a tool returned that is no dict: the answer that it becomes, and the files in it."""

from .protocol import Failure
from .values import members_of, still_to_come

_MEMBERS = ("status", "message", "data", "data_objects", "error_code")
_INLINE, _WITH_PREVIEW = "inline", "artifact_with_preview"
_DISPOSITIONS = ("artifact", "auto", _WITH_PREVIEW, _INLINE)
# Characters of a preview that the tool did not write itself, as in an agent that runs the tool in
# its own process.
_PREVIEW_LENGTH = 500
# The type of a DataObject that was given none.
_DEFAULT_TYPE = "text/plain"


def as_object(returned: object, context: object) -> dict:
    """The answer as an object; the files of a ToolResult are saved as output artifacts.

    Raises Failure for what is no answer and for files that cannot be saved, and what the tool's own
    code raises: values are asked for their text and their members.
    """
    problem = still_to_come(returned)
    if problem:
        raise Failure("EXECUTION_ERROR", f"The tool returned {problem}")
    if _is_tool_result(returned):
        return _taken_apart(returned, context)
    members = members_of(returned)
    if isinstance(members, dict):
        return members
    value = returned if members is None else members
    return {"text": None if value is None else str(value), "data_objects": []}


def _is_tool_result(value: object) -> bool:
    """By its shape: some are pydantic models of a package, some are the tool's own."""
    return hasattr(value, "status") and isinstance(getattr(value, "data_objects", None), (list, tuple))


def _taken_apart(result: object, context: object) -> dict:
    members = members_of(result)
    # With a `_schema` it is the form that a result travels in between programs, and may lack
    # members.
    if not isinstance(members, dict) or "_schema" in members:
        members = {name: getattr(result, name, None) for name in _MEMBERS}
    kept: "list[object]" = []
    names: "set[str]" = set()
    for data_object in result.data_objects:
        disposition = _disposition_of(data_object)
        if disposition == _INLINE:
            kept.append(data_object)
            continue
        _save(data_object, names, context)
        if disposition == _WITH_PREVIEW:
            kept.extend(_previews_of(data_object))
    return {**members, "data_objects": kept}


def _disposition_of(data_object: object) -> str:
    disposition = getattr(data_object, "disposition", "auto")
    disposition = getattr(disposition, "value", disposition)
    if disposition not in _DISPOSITIONS:
        raise _refused(data_object, f"its disposition is none of {', '.join(_DISPOSITIONS)}")
    return disposition


def _save(data_object: object, names: "set[str]", context: object) -> None:
    """Saves a file of the result. `names` are those of the files before it."""
    name, content = getattr(data_object, "name", None), getattr(data_object, "content", None)
    if name in names:
        raise _refused(data_object, "the result has another one of this name")
    if not isinstance(content, (str, bytes, bytearray, memoryview)):
        raise _refused(data_object, f"its content is {type(content).__name__}, not str or bytes")
    try:
        encoded = content.encode("utf-8") if isinstance(content, str) else content
        context.save_artifact(
            name, encoded, _type_of(data_object), getattr(data_object, "description", None)
        )
    except (TypeError, ValueError) as error:
        raise _refused(data_object, str(error)) from None
    except OSError as error:
        raise _refused(data_object, str(error.strerror)) from None
    names.add(name)


def _type_of(data_object: object) -> "str | None":
    """The MIME type that the tool gave; None for what the filename's extension stands for."""
    mime_type = getattr(data_object, "mime_type", None)
    given = getattr(data_object, "model_fields_set", None)
    if mime_type != _DEFAULT_TYPE or (given is not None and "mime_type" in given):
        return mime_type
    is_text = isinstance(data_object.content, str)
    return _DEFAULT_TYPE if is_text and "." not in str(data_object.name) else None


def _previews_of(data_object: object) -> "list[dict]":
    """
    What stays in the answer of a file with a preview; nothing for bytes that the tool wrote no
    preview of.

    Inline, so that no reader takes the preview for the file and saves it over it.
    """
    preview, content = getattr(data_object, "preview", None), data_object.content
    if not preview and isinstance(content, str):
        preview = content if len(content) <= _PREVIEW_LENGTH else content[:_PREVIEW_LENGTH] + "..."
    members = members_of(data_object)
    if not isinstance(members, dict):
        members = {"name": data_object.name, "mime_type": getattr(data_object, "mime_type", None)}
    members.pop("is_binary", None)  # Of the file; the preview is text.
    return [{**members, "content": preview, "disposition": _INLINE}] if preview else []


def _refused(data_object: object, reason: str) -> Failure:
    name = str(getattr(data_object, "name", None))[:80]
    return Failure("EXECUTION_ERROR", f'Data object "{name}" of the tool\'s result cannot be kept: {reason}')
