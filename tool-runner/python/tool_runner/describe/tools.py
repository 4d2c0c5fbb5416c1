"""What a tool says of itself: see "Describing a tool" in tool-runner/PROTOCOL.md."""

import sys

from ..artifact_parameters import kind_of
from ..binding import artifact_parameters, hidden_parameters
from ..protocol import Call
from ..providers import provided_by
from ..signatures import Signature, signature_of
from .annotated import description_in
from .class_tools import artifact_members, description_of_class, description_of_instance
from .docstrings import Docstring
from .records import members_of_unpacked, with_default
from .results import result_schema
from .schemas import Schemas

# Characters of a description.
_MAX_DESCRIPTION = 4_000
_FILENAME = "Filename of an artifact"
_FILENAMES = "Filenames of artifacts"


def description_of(tool: object, call: Call) -> dict:
    """What is known of a tool. Raises Failure for a class that is no tool."""
    if call.class_name and call.tool_name:
        described = _description_of_provided(tool, call)
    elif call.class_name:
        described = description_of_class(tool, call)
    else:
        described = _description_of_function(tool, call)
    text = described.get("description")
    if isinstance(text, str) and len(text) > _MAX_DESCRIPTION:
        described["description"] = text[: _MAX_DESCRIPTION - 1] + "…"
    return {name: value for name, value in described.items() if value is not None}


def _description_of_provided(provider: type, call: Call) -> dict:
    function, instance = provided_by(provider, call)
    if function is None:
        return description_of_instance(instance)
    return _description_of_function(function, call)


def _description_of_function(tool: object, call: Call) -> dict:
    module = sys.modules[call.module]
    plain = getattr(tool, "func", tool)  # Of a partial.
    docstring = Docstring(getattr(plain, "__doc__", None))
    signature = signature_of(tool)
    if signature is None:
        return {"description": docstring.description}
    artifacts = artifact_parameters(signature)
    hidden = hidden_parameters(tool, signature, module)
    return {
        "description": docstring.description,
        "parameters": _parameters(tool, signature, hidden, docstring),
        "result": result_schema(tool, signature.namespace),
        "artifact_parameters": artifact_members(
            {each.name: kind_of(each) for each in artifacts if each.name not in hidden}
        ),
    }


def _parameters(
    tool: object, signature: Signature, hidden: "set[str]", docstring: Docstring
) -> dict:
    schemas = Schemas()
    artifacts = {each.name: kind_of(each) for each in artifact_parameters(signature)}
    properties, required = {}, []
    for parameter in signature.parameters:
        name = parameter.name
        if name in hidden:
            continue
        schema = {} if parameter.annotation is None else schemas.of(parameter.annotation, signature.namespace)
        text = schema.get("description") or docstring.parameters.get(name)
        if not text and not isinstance(parameter.default, str):
            text = description_in(parameter.default)  # A `Field` of pydantic in place of a default.
        if name in artifacts:
            is_list, _ = artifacts[name]
            schema = schema or _filename(is_list)
            text = text or (_FILENAMES if is_list else _FILENAME)
        if text:
            schema = {**schema, "description": text}
        if parameter.required:
            required.append(name)
        else:
            schema = with_default(schema, parameter.default)
        properties[name] = schema
    object_schema = {"type": "object", "properties": properties}
    more = _other_names(tool, signature, schemas)
    for name, schema in more.get("properties", {}).items():
        properties.setdefault(name, schema)
    required += [name for name in more.get("required", ()) if name not in required]
    if required:
        object_schema["required"] = required
    return schemas.rooted({**object_schema, "additionalProperties": more.get("additionalProperties", False)})


def _filename(is_list: bool) -> dict:
    filename = {"type": "string"}
    return {"type": "array", "items": filename} if is_list else filename


def _other_names(tool: object, signature: Signature, schemas: Schemas) -> dict:
    """What `**kwargs` take: anything, values of a type, or the members of a TypedDict."""
    if not signature.takes_any_name:
        return {}
    import inspect

    try:
        given = inspect.signature(tool).parameters.values()
        rest = next(each for each in given if each.kind is each.VAR_KEYWORD)
        if rest.annotation is rest.empty:
            return {"additionalProperties": True}
        members = members_of_unpacked(rest.annotation, signature.namespace)
    except Exception:
        return {"additionalProperties": True}
    if members is None:
        return {"additionalProperties": schemas.of(rest.annotation, signature.namespace) or True}
    name = schemas.of(members, signature.namespace)["$ref"].rpartition("/")[2]
    return schemas.definitions.pop(name)
