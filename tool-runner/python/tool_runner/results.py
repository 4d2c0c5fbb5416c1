"""What a tool returned that is no dict, as an answer, and the files in it."""

from .errors import Failure
from .values import members_of, pending_kind

_MEMBERS = ("status", "message", "data", "data_objects", "error_code")
_INLINE, _WITH_PREVIEW = "inline", "artifact_with_preview"
_DISPOSITIONS = ("artifact", "auto", _WITH_PREVIEW, _INLINE)
# Characters, where the tool gives no preview. Agents that run tools themselves have the same.
_PREVIEW_LENGTH = 500
# Of a DataObject without one.
_DEFAULT_TYPE = "text/plain"


def as_object(returned: object, context: object) -> dict:
    """The answer as an object; the files of a ToolResult become output artifacts.

    Raises Failure, and what the tool's classes raise.
    """
    problem = pending_kind(returned)
    if problem:
        raise Failure("EXECUTION_ERROR", f"The tool returned {problem}")
    # By its shape: results are models of several packages and classes of tools.
    if hasattr(returned, "status") and isinstance(getattr(returned, "data_objects", None), (list, tuple)):
        return _with_files_saved(returned, context)
    members = members_of(returned)
    if isinstance(members, dict):
        return members
    value = returned if members is None else members
    return {"text": None if value is None else str(value), "data_objects": []}


def _with_files_saved(result: object, context: object) -> dict:
    members = members_of(result)
    # With a `_schema` it is the form in which results travel, which may lack members.
    if not isinstance(members, dict) or "_schema" in members:
        members = {name: getattr(result, name, None) for name in _MEMBERS}
    kept: "list[object]" = []
    names: "set[str]" = set()
    for data_object in result.data_objects:
        disposition = getattr(data_object, "disposition", "auto")
        disposition = getattr(disposition, "value", disposition)
        if disposition not in _DISPOSITIONS:
            raise _refused(data_object, f"its disposition is none of {', '.join(_DISPOSITIONS)}")
        if disposition == _INLINE:
            kept.append(data_object)
            continue
        _save(data_object, names, context)
        if disposition == _WITH_PREVIEW:
            kept.extend(_previews_of(data_object))
    return {**members, "data_objects": kept}


def _save(data_object: object, names: "set[str]", context: object) -> None:
    """Saves a file of the result, and adds its name to those of the files before it."""
    name, content = getattr(data_object, "name", None), getattr(data_object, "content", None)
    if name in names:
        raise _refused(data_object, "the result has another one of this name")
    if not isinstance(content, (str, bytes, bytearray, memoryview)):
        raise _refused(data_object, f"its content is {type(content).__name__}, not str or bytes")
    description = getattr(data_object, "description", None)
    try:
        encoded = content.encode("utf-8") if isinstance(content, str) else content
        context.save_artifact(name, encoded, _type_of(data_object), description)
    except (TypeError, ValueError) as error:
        raise _refused(data_object, str(error)) from None
    except OSError as error:
        raise _refused(data_object, str(error.strerror)) from None
    names.add(name)


def _type_of(data_object: object) -> "str | None":
    """The MIME type that the tool gave; None for that of the filename's extension."""
    mime_type = getattr(data_object, "mime_type", None)
    given = getattr(data_object, "model_fields_set", None)
    if mime_type != _DEFAULT_TYPE or (given is not None and "mime_type" in given):
        return mime_type
    is_text = isinstance(data_object.content, str)
    return _DEFAULT_TYPE if is_text and "." not in str(data_object.name) else None


def _previews_of(data_object: object) -> "list[dict]":
    """A file's preview, which stays in the answer; none for bytes without a preview of the tool's.

    It is inline: else a reader would save it as the file's next version.
    """
    preview, content = getattr(data_object, "preview", None), data_object.content
    if not preview and isinstance(content, str):
        preview = content if len(content) <= _PREVIEW_LENGTH else content[:_PREVIEW_LENGTH] + "..."
    if not preview:
        return []
    members = members_of(data_object)
    if not isinstance(members, dict):
        members = {"name": data_object.name, "mime_type": getattr(data_object, "mime_type", None)}
    members.pop("is_binary", None)  # Of the file; the preview is text.
    return [{**members, "content": preview, "disposition": _INLINE}]


def _refused(data_object: object, reason: str) -> Failure:
    name = str(getattr(data_object, "name", None))[:80]
    text = f'Data object "{name}" of the tool\'s result cannot be kept: {reason}'
    return Failure("EXECUTION_ERROR", text)
