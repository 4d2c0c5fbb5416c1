"""Arguments that are artifacts, as objects: one, a list, or either or nothing."""

from .errors import Failure
from .protocol import Call
from .signatures import Parameter, class_in

_ARTIFACT = "Artifact"
_LISTS = frozenset(("list", "List", "Sequence", "Iterable", "tuple", "Tuple"))
_OPTIONAL = frozenset(("Optional", "None", "NoneType", "str"))


def artifacts_of(parameters: "list[Parameter]", call: Call, namespace: dict) -> dict:
    """The artifacts that the call has for annotated parameters, by parameter. Raises Failure where
    one is missing that neither the annotation nor a default allows to miss, or cannot be read.
    """
    artifacts = {}
    for parameter in parameters:
        is_list, is_optional = kind_of(parameter)
        make = class_in(parameter.annotation, _ARTIFACT) or namespace.get(_ARTIFACT)
        artifacts.update(artifacts_for(parameter.name, is_list, is_optional, make, call))
    return artifacts


def kind_of(parameter: Parameter) -> "tuple[bool, bool]":
    """Whether an annotated parameter takes a list of artifacts, and whether it can do without."""
    is_list = not _LISTS.isdisjoint(parameter.words)
    return is_list, not _OPTIONAL.isdisjoint(parameter.words) or not parameter.required


def artifacts_for(name: str, is_list: bool, is_optional: bool, make: object, call: Call) -> dict:
    """The argument of one parameter by its name; empty where the call has no artifact for it.

    `make` is the tool's class `Artifact`, or what it has in its place. Raises Failure.
    """
    if not isinstance(make, type):
        from secure_tool_runtime.artifacts import Artifact

        make = Artifact
    given = call.args.get(name)
    if not is_list:
        if name in call.artifact_paths:
            return {name: _artifact(name, make, call)}
        if isinstance(given, str) and not is_optional:
            raise _missing(name, name, call)
        return {}
    count = len(given) if isinstance(given, list) else 0
    artifacts = []
    while f"{name}[{len(artifacts)}]" in call.artifact_paths:
        artifacts.append(_artifact(f"{name}[{len(artifacts)}]", make, call))
    if not artifacts and name in call.artifact_paths:
        artifacts.append(_artifact(name, make, call))
    # A partial list is always an error.
    if len(artifacts) < count and (artifacts or not is_optional):
        raise _missing(name, f"{name}[{len(artifacts)}]", call)
    if isinstance(given, str) and not artifacts and not is_optional:
        raise _missing(name, name, call)
    return {name: artifacts} if artifacts else {}


def _artifact(entry: str, make: type, call: Call) -> object:
    path = call.artifact_paths[entry]
    metadata = call.artifact_metadata.get(entry, {})
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        text = f'The artifact "{entry}" cannot be read: {error.strerror}'
        raise Failure("EXECUTION_ERROR", text) from None
    return make(
        content=content,
        filename=metadata.get("filename", path.rpartition("/")[2]),
        version=metadata.get("version", 0),
        mime_type=metadata.get("mime_type", "application/octet-stream"),
        metadata={},
    )


def _missing(name: str, entry: str, call: Call) -> Failure:
    return Failure(
        "EXECUTION_ERROR",
        f'{call.function or call.class_name}() takes an artifact as "{name}", and the call brings none as "{entry}"',
    )
