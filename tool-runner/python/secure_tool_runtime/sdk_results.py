"""
Results as the separate package `sam_tool_sdk` has them: plain records, whose members are not
checked.
"""

from .results import DataDisposition, ResultMethods, SerializableData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Record:
    """Shown and compared by its members."""

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({members})"

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if type(other) is type(self) else NotImplemented

    def model_dump(self, *_arguments: object, **_options: object) -> "dict[str, object]":
        """As `to_serializable`, whatever is asked for."""
        return self.to_serializable()


class DataObject(SerializableData, _Record):
    """A piece of data: a file to be, or content for the answer."""

    def __init__(
        self,
        name: str,
        content: "str | bytes",
        mime_type: str = "text/plain",
        disposition: "DataDisposition | str" = DataDisposition.AUTO,
        description: "str | None" = None,
        preview: "str | None" = None,
        metadata: "dict[str, Any] | None" = None,
        tags: "list[str] | None" = None,
    ) -> None:
        self.name = name
        self.content = content
        self.mime_type = mime_type
        self.disposition = disposition
        self.description = description
        self.preview = preview
        self.metadata = metadata
        self.tags = tags

    def to_serializable(self) -> "dict[str, object]":
        """
        The members for JSON: bytes that are UTF-8 as text, others in base64, and `is_binary` says
        so.
        """
        members = super().to_serializable()
        try:
            text = self.content.decode("utf-8") if members["is_binary"] else self.content
        except UnicodeDecodeError:
            return members
        return {**members, "content": text, "is_binary": False}


class ToolResult(ResultMethods, _Record):
    """
    A result: `status` ("success", "error", "partial", "pending"), `message`, `data`,
    `data_objects`, `error_code`.
    """

    _data_object = DataObject
    _no_message = ""

    def __init__(
        self,
        status: str = "success",
        message: "str | None" = "",
        data: "dict[str, Any] | None" = None,
        data_objects: "list[SerializableData] | None" = None,
        error_code: "str | None" = None,
    ) -> None:
        self.status = status
        self.message = message
        self.data = data
        self.data_objects: "list[SerializableData]" = [] if data_objects is None else data_objects
        self.error_code = error_code

    def to_serializable(self) -> "dict[str, object]":
        """
        The members for JSON, with `_schema` and its version; without `data` and `data_objects` that
        are empty.
        """
        members = {**self._serialized(), "message": self.message or ""}
        if self.data:
            members["data"] = self.data
        if self.data_objects:
            members["data_objects"] = [each.to_serializable() for each in self.data_objects]
        return members
