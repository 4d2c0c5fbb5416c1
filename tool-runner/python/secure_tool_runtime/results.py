"""Results with files in them: what a tool returns that wants more than a dict.

The classes have the names, members and defaults of the original's, which are pydantic models; like these they take
their members by keyword and ignore what they do not know. They check nothing: the runner does, when it takes a
result apart.
"""

import enum


class DataDisposition(str, enum.Enum):
    """What becomes of a DataObject."""

    AUTO = "auto"
    ARTIFACT = "artifact"
    INLINE = "inline"
    ARTIFACT_WITH_PREVIEW = "artifact_with_preview"


class _Model:
    """Members by keyword, with defaults; `model_fields_set` has the names that were given."""

    _defaults: "dict[str, object]" = {}
    _required: "tuple[str, ...]" = ()

    def __init__(self, **members: object) -> None:
        for name in self._required:
            if name not in members:
                raise TypeError(f"{type(self).__name__}() is missing the member {name!r}")
        self.model_fields_set = {name for name in members if name in self._defaults}
        for name, default in self._defaults.items():
            setattr(self, name, members.get(name, default))

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._defaults)
        return f"{type(self).__name__}({members})"

    def model_dump(self, **_options: object) -> "dict[str, object]":
        """The members as a dict, models inside as dicts."""
        return {name: _dumped(getattr(self, name)) for name in self._defaults}


class DataObject(_Model):
    """A piece of data: a file to be, or content for the answer.

    Members: `name` (the filename) and `content` (str or bytes), both required; `mime_type`, `disposition`,
    `description`, `preview`, `metadata`.
    """

    _defaults = {
        "name": None,
        "content": None,
        "mime_type": "text/plain",
        "disposition": DataDisposition.AUTO,
        "description": None,
        "preview": None,
        "metadata": None,
    }
    _required = ("name", "content")


class ToolResult(_Model):
    """A result: `status` ("success", "error", "partial"), `message`, `data`, `data_objects`, `error_code`."""

    _defaults = {
        "status": "success",
        "message": None,
        "data": None,
        "data_objects": (),
        "error_code": None,
    }

    def __init__(self, **members: object) -> None:
        super().__init__(**members)
        self.data_objects = [
            DataObject(**each) if isinstance(each, dict) else each for each in self.data_objects or ()
        ]

    @classmethod
    def ok(
        cls, message: str, data: "dict | None" = None, data_objects: "list[DataObject] | None" = None
    ) -> "ToolResult":
        """A success."""
        return cls(status="success", message=message, data=data, data_objects=data_objects)

    @classmethod
    def error(
        cls, message: str, code: "str | None" = None, data: "dict | None" = None
    ) -> "ToolResult":
        """A failure that the agent hands to the model; on the wire it is a result, not an error."""
        return cls(status="error", message=message, error_code=code, data=data)

    @classmethod
    def partial(
        cls,
        message: str,
        data: "dict | None" = None,
        data_objects: "list[DataObject] | None" = None,
        error_code: "str | None" = None,
    ) -> "ToolResult":
        """A success of some parts only."""
        return cls(
            status="partial",
            message=message,
            data=data,
            data_objects=data_objects,
            error_code=error_code,
        )


def _dumped(value: object) -> object:
    if isinstance(value, _Model):
        return value.model_dump()
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, list):
        return [_dumped(each) for each in value]
    return value
