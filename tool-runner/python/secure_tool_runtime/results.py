"""Results with files in them: what a tool returns that wants more than a dict.

The classes have the names, members and defaults of the original's, which are pydantic models; like
these they take their members by keyword, check and convert them, and ignore those that they do not
know.
"""

import enum

from .models import REQUIRED, Model, list_of, model_of, one_of, optional, text, text_keyed, text_or_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from typing_extensions import Self

TOOL_RESULT_SCHEMA_VERSION = "1.0"
"""Version of the form that `to_serializable` gives."""

_SCHEMA = "ToolResult"


class DataDisposition(str, enum.Enum):
    """What becomes of a DataObject."""

    AUTO = "auto"
    ARTIFACT = "artifact"
    INLINE = "inline"
    ARTIFACT_WITH_PREVIEW = "artifact_with_preview"


class SerializableData:
    """Ways of a data object to and from values that JSON has."""

    __slots__ = ()
    if TYPE_CHECKING:
        name: str
        content: str | bytes
        mime_type: str
        disposition: DataDisposition
        description: str | None
        preview: str | None
        metadata: dict[str, Any] | None
        tags: list[str] | None

        def __init__(
            self,
            name: str,
            content: str | bytes,
            mime_type: str = ...,
            disposition: DataDisposition | str = ...,
            description: str | None = ...,
            preview: str | None = ...,
            metadata: dict[str, Any] | None = ...,
            tags: list[str] | None = ...,
        ) -> None: ...

    def to_serializable(self) -> "dict[str, object]":
        """
        The members for JSON: bytes in base64, and `is_binary` says so. `tags` are left out, as in
        the original.
        """
        content = self.content
        is_binary = isinstance(content, bytes)
        if is_binary:
            from binascii import b2a_base64

            content = b2a_base64(content, newline=False).decode("ascii")
        names = ("mime_type", "disposition", "description", "preview", "metadata")
        members = {name: getattr(self, name) for name in names}
        members["disposition"] = getattr(self.disposition, "value", self.disposition)
        return {"name": self.name, "content": content, "is_binary": is_binary, **members}

    @classmethod
    def from_serialized(cls, data: "dict[str, Any]") -> "Self":
        """The data object of a `to_serializable`. Raises KeyError without a name."""
        content = data.get("content", "")
        if data.get("is_binary", False):
            from binascii import a2b_base64

            content = a2b_base64(content)
        return cls(
            name=data["name"],
            content=content,
            mime_type=data.get("mime_type", "text/plain"),
            disposition=DataDisposition(data.get("disposition", "auto")),
            description=data.get("description"),
            preview=data.get("preview"),
            metadata=data.get("metadata"),
        )


class ResultMethods:
    """Ways to make a result, and from values that JSON has."""

    __slots__ = ()
    _data_object: "type[SerializableData]"
    _no_message: "str | None" = None
    if TYPE_CHECKING:
        status: str
        message: str | None
        data: dict[str, Any] | None
        data_objects: list[SerializableData]
        error_code: str | None

        def __init__(
            self,
            *,
            status: str = ...,
            message: str | None = ...,
            data: dict[str, Any] | None = ...,
            data_objects: Sequence[SerializableData] | None = ...,
            error_code: str | None = ...,
        ) -> None: ...

    @classmethod
    def ok(
        cls,
        message: str,
        data: "dict[str, Any] | None" = None,
        data_objects: "Sequence[SerializableData] | None" = None,
    ) -> "Self":
        """A success."""
        return cls(status="success", message=message, data=data, data_objects=data_objects or [])

    @classmethod
    def error(
        cls, message: str, code: "str | None" = None, data: "dict[str, Any] | None" = None
    ) -> "Self":
        """A failure that the agent hands to the model; on the wire it is a result, not an error."""
        return cls(status="error", message=message, error_code=code, data=data)

    @classmethod
    def auth_required(cls, message: str = "Authentication required") -> "Self":
        """A failure for want of the caller's authorization, for agents that know its code."""
        return cls(status="error", message=message, error_code="AUTH_REQUIRED")

    @classmethod
    def partial(
        cls,
        message: str,
        data: "dict[str, Any] | None" = None,
        data_objects: "Sequence[SerializableData] | None" = None,
        error_code: "str | None" = None,
    ) -> "Self":
        """A success of some parts only."""
        data_objects = data_objects or []
        return cls(
            status="partial", message=message, data=data, data_objects=data_objects, error_code=error_code
        )

    @classmethod
    def pending(
        cls,
        message: str,
        data: "dict[str, Any] | None" = None,
        data_objects: "Sequence[SerializableData] | None" = None,
    ) -> "Self":
        """
        A result that somebody else still has to give, for agents that know how to wait for it.
        """
        return cls(status="pending", message=message, data=data, data_objects=data_objects or [])

    @classmethod
    def from_serialized(cls, data: "dict[str, Any]") -> "Self":
        """
        The result of a `to_serializable`; data objects that are none are left out, with a warning.

        Raises ValueError for anything else.
        """
        if data.get("_schema") != _SCHEMA:
            raise ValueError(f"expected _schema to be {_SCHEMA!r}, found {data.get('_schema')!r}")
        version = data.get("_schema_version", "unknown")
        if version != TOOL_RESULT_SCHEMA_VERSION:
            _warn("_schema_version is %s, not %s; read all the same", version, TOOL_RESULT_SCHEMA_VERSION)
        data_objects = []
        for each in data.get("data_objects", []):
            try:
                data_objects.append(cls._data_object.from_serialized(each))
            except Exception as error:
                _warn("a data object cannot be read and is left out: %s", error)
        message = data.get("message")
        return cls(
            status=data.get("status", "success"),
            message=cls._no_message if message is None else message,
            data=data.get("data"),
            data_objects=data_objects,
            error_code=data.get("error_code"),
        )

    @staticmethod
    def is_serialized_tool_result(data: object) -> bool:
        """Whether this is what `to_serializable` gives."""
        return isinstance(data, dict) and data.get("_schema") == _SCHEMA

    def _serialized(self) -> "dict[str, object]":
        """What every form of `to_serializable` has."""
        return {
            "_schema": _SCHEMA,
            "_schema_version": TOOL_RESULT_SCHEMA_VERSION,
            "status": self.status,
            "message": self.message,
            "error_code": self.error_code,
        }


class DataObject(SerializableData, Model):
    """A piece of data: a file to be, or content for the answer.

    Members: `name` (the filename) and `content` (str or bytes), both required; `mime_type`,
    `disposition`, `description`, `preview`, `metadata`, `tags`. Raises ValidationError, a
    ValueError.
    """

    _fields = {
        "name": (text, REQUIRED),
        "content": (text_or_bytes, REQUIRED),
        "mime_type": (text, "text/plain"),
        "disposition": (one_of(DataDisposition), DataDisposition.AUTO),
        "description": (optional(text), None),
        "preview": (optional(text), None),
        "metadata": (optional(text_keyed), None),
        "tags": (optional(list_of(text)), None),
    }


class ToolResult(ResultMethods, Model):
    """
    A result: `status` ("success", "error", "partial"), `message`, `data`, `data_objects`,
    `error_code`.

    Raises ValidationError, a ValueError, for members of other types.
    """

    _fields = {
        "status": (text, "success"),
        "message": (optional(text), None),
        "data": (optional(text_keyed), None),
        "data_objects": (list_of(model_of(DataObject)), list),
        "error_code": (optional(text), None),
    }
    _data_object = DataObject

    def to_serializable(self) -> "dict[str, object]":
        """
        The members for JSON, with `_schema` and its version. Raises nothing: `data` is as the tool
        gave it.
        """
        data_objects = [each.to_serializable() for each in self.data_objects]
        return {**self._serialized(), "data": self.data, "data_objects": data_objects}


def _warn(message: str, *values: object) -> None:
    import logging

    logging.getLogger(__name__).warning("ToolResult: " + message, *values)
