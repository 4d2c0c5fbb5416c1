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
        metadata: "dict[str, object] | None" = None,
    ) -> None:
        self.content: "bytes | str" = content
        self.filename: str = filename
        self.version: int = version
        self.mime_type: str = mime_type
        self.metadata: "dict[str, object]" = {} if metadata is None else metadata

    def __eq__(self, other: object) -> bool:
        return _members(self) == _members(other) if type(other) is type(self) else NotImplemented

    def __repr__(self) -> str:
        return f"Artifact({self.filename!r}, version={self.version}, mime_type={self.mime_type!r})"

    def as_text(self, encoding: str = "utf-8") -> str:
        """The content as text. Raises UnicodeDecodeError when it is not in the encoding."""
        return self.content if isinstance(self.content, str) else self.content.decode(encoding)

    def as_bytes(self, encoding: str = "utf-8") -> bytes:
        """The content as bytes."""
        return self.content.encode(encoding) if isinstance(self.content, str) else self.content


class ArtifactTypeInfo:
    """Whether a parameter is an artifact, and how it is taken: one or a list, required or not."""

    __slots__ = ("is_artifact", "is_list", "is_optional")

    def __init__(
        self, is_artifact: bool = False, is_list: bool = False, is_optional: bool = False
    ) -> None:
        self.is_artifact: bool = is_artifact
        self.is_list: bool = is_list
        self.is_optional: bool = is_optional

    def __eq__(self, other: object) -> bool:
        return _members(self) == _members(other) if type(other) is type(self) else NotImplemented

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={getattr(self, name)}" for name in self.__slots__)
        return f"ArtifactTypeInfo({members})"


def get_artifact_info(annotation: object) -> ArtifactTypeInfo:
    """
    What an annotation says of artifacts: `Artifact`, a list of them, either of these or None; class
    or text.
    """
    if isinstance(annotation, str):
        return _info_of_text(annotation)
    if annotation is Artifact:
        return ArtifactTypeInfo(is_artifact=True)
    arguments = getattr(annotation, "__args__", None) or ()
    origin = getattr(annotation, "__origin__", None)
    infos = [get_artifact_info(each) for each in arguments]
    inner = next((each for each in infos if each.is_artifact), None)
    if inner is None:
        return ArtifactTypeInfo()
    if origin is list:
        return ArtifactTypeInfo(is_artifact=True, is_list=True) if not inner.is_list else ArtifactTypeInfo()
    if _UNIONS.isdisjoint((getattr(origin, "_name", None), type(annotation).__name__)):
        return ArtifactTypeInfo()
    return ArtifactTypeInfo(is_artifact=True, is_list=inner.is_list, is_optional=type(None) in arguments)


def is_artifact_type(annotation: object) -> bool:
    """Whether an annotation asks for an artifact, or for a list of them."""
    return get_artifact_info(annotation).is_artifact


# How `Union[…]` and `… | …` are known; the latter from Python 3.10 on, both from 3.14 on by one
# name.
_UNIONS = frozenset(("Union", "UnionType"))
_WORDS = frozenset(("Artifact", "List", "list", "Optional", "Union", "None", "NoneType", "typing"))


def _info_of_text(annotation: str) -> ArtifactTypeInfo:
    for mark in "[]|,.'\"":
        annotation = annotation.replace(mark, " ")
    words = set(annotation.split())
    if "Artifact" not in words or not words <= _WORDS:
        return ArtifactTypeInfo()
    return ArtifactTypeInfo(
        is_artifact=True,
        is_list=not words.isdisjoint(("List", "list")),
        is_optional=not words.isdisjoint(("Optional", "None", "NoneType")),
    )


def _members(value: object) -> "list[object]":
    return [getattr(value, name) for name in value.__slots__]
