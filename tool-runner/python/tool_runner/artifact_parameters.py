"""
Parameters that take artifacts as objects: `Artifact`, a list of them, or either of these or
nothing.
"""

from .protocol import BadArguments, Call
from .signatures import Parameter, class_in

_ARTIFACT = "Artifact"
_LISTS = frozenset(("list", "List", "Sequence", "Iterable", "tuple", "Tuple"))
_OPTIONAL = frozenset(("Optional", "None", "NoneType", "str"))


def artifacts_of(parameters: "list[Parameter]", call: Call, namespace: dict) -> dict:
    """The artifacts of those parameters that the call brings some for, by parameter.

    A parameter without one keeps its argument, or its default, if its annotation or its default
    allows that. Raises BadArguments otherwise, and for an artifact that cannot be read.
    """
    taken = {}
    for parameter in parameters:
        is_list = not _LISTS.isdisjoint(parameter.words)
        is_optional = not _OPTIONAL.isdisjoint(parameter.words) or not parameter.required
        make = class_in(parameter.annotation, _ARTIFACT) or namespace.get(_ARTIFACT)
        taken.update(artifacts_for(parameter.name, is_list, is_optional, make, call))
    return taken


def artifacts_for(name: str, is_list: bool, is_optional: bool, make: object, call: Call) -> dict:
    """What a parameter gets, by its name; nothing where the call brings no artifact for it.

    `make` is the class that the tool knows as `Artifact`; where it only knows the name, it gets
    ours.
    """
    if not isinstance(make, type):
        from secure_tool_runtime.artifacts import Artifact

        make = Artifact
    return _list(name, is_optional, make, call) if is_list else _single(name, is_optional, make, call)


def _single(name: str, is_optional: bool, make: type, call: Call) -> dict:
    if name in call.artifact_paths:
        return {name: _artifact(name, make, call)}
    if isinstance(call.args.get(name), str) and not is_optional:
        raise _absent(name, name, call)
    return {}


def _list(name: str, is_optional: bool, make: type, call: Call) -> dict:
    given = call.args.get(name)
    count = len(given) if isinstance(given, list) else 0
    artifacts = []
    while f"{name}[{len(artifacts)}]" in call.artifact_paths:
        artifacts.append(_artifact(f"{name}[{len(artifacts)}]", make, call))
    if not artifacts and name in call.artifact_paths:
        artifacts.append(_artifact(name, make, call))
    # A part of what was asked for is never what was asked for.
    if len(artifacts) < count and (artifacts or not is_optional):
        raise _absent(name, f"{name}[{len(artifacts)}]", call)
    if isinstance(given, str) and not artifacts and not is_optional:
        raise _absent(name, name, call)
    return {name: artifacts} if artifacts else {}


def _artifact(entry: str, make: type, call: Call) -> object:
    path = call.artifact_paths[entry]
    metadata = call.artifact_metadata.get(entry, {})
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise BadArguments(f'The artifact "{entry}" cannot be read: {error.strerror}') from None
    return make(
        content=content,
        filename=metadata.get("filename", path.rpartition("/")[2]),
        version=metadata.get("version", 0),
        mime_type=metadata.get("mime_type", "application/octet-stream"),
        metadata={},
    )


def _absent(name: str, entry: str, call: Call) -> BadArguments:
    return BadArguments(
        f'{call.function or call.class_name}() takes an artifact as "{name}", and the call brings none as "{entry}"'
    )
