"""Artifacts as objects, for parameters that are annotated with `Artifact`."""


class Artifact:
    """An input artifact: its content and what is known of it."""

    __slots__ = ("content", "filename", "metadata", "mime_type", "version")

    def __init__(
        self,
        content: "bytes | str",
        filename: str,
        version: int,
        mime_type: str,
        metadata: "dict | None" = None,
    ) -> None:
        self.content = content
        self.filename = filename
        self.version = version
        self.mime_type = mime_type
        self.metadata = {} if metadata is None else metadata

    def __repr__(self) -> str:
        return f"Artifact({self.filename!r}, version={self.version}, mime_type={self.mime_type!r})"

    def as_text(self, encoding: str = "utf-8") -> str:
        """The content as text. Raises UnicodeDecodeError when it is not in the encoding."""
        return self.content if isinstance(self.content, str) else self.content.decode(encoding)

    def as_bytes(self, encoding: str = "utf-8") -> bytes:
        """The content as bytes."""
        return self.content.encode(encoding) if isinstance(self.content, str) else self.content


class ArtifactTypeInfo:
    """How a class tool takes a parameter that is an artifact: one or a list, required or not."""

    __slots__ = ("is_artifact", "is_list", "is_optional")

    def __init__(
        self, is_artifact: bool = False, is_list: bool = False, is_optional: bool = False
    ) -> None:
        self.is_artifact = is_artifact
        self.is_list = is_list
        self.is_optional = is_optional
