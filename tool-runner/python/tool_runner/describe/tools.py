"""What a tool says of itself: see "Describing a tool" in tool-runner/PROTOCOL.md."""

import inspect
import sys

from ..artifact_parameters import kind_of
from ..binding import artifact_parameters, hidden_parameters
from ..class_tools import is_provider
from ..protocol import Call
from ..providers import all_provided, provided_by
from ..signatures import Parameter, Signature, signature_of
from .annotated import with_metadata
from .class_tools import (
    artifact_members,
    config_schema,
    description_of_class,
    description_of_instance,
)
from .docstrings import Docstring
from .records import members_of_unpacked, with_default
from .results import result_schema
from .schemas import Schemas

# Characters of a description.
_MAX_DESCRIPTION = 4_000
# Of pydantic, in place of a default.
_FIELD = "FieldInfo"
_TEXT = "str"
_FILENAME = "Filename of an artifact"
_FILENAMES = "Filenames of artifacts"


def description_of(tool: object, call: Call) -> dict:
    """What is known of a tool, and of each tool of a provider where the call names none. Raises
    Failure for a class that is no tool.
    """
    if not call.class_name:
        return _bounded(_description_of_function(tool, call))
    if call.tool_name:
        return _bounded(_description_of_provided(tool, provided_by(tool, call), call))
    if not is_provider(tool):
        return _bounded(description_of_class(tool, call))
    provided = all_provided(tool, call).items()
    return {"tools": {name: _bounded(_description_of_provided(tool, each, call)) for name, each in provided}}


def _bounded(described: dict) -> dict:
    text = described.get("description")
    if isinstance(text, str) and len(text) > _MAX_DESCRIPTION:
        described["description"] = text[: _MAX_DESCRIPTION - 1] + "…"
    return {name: value for name, value in described.items() if value is not None}


def _description_of_provided(provider: type, provided: tuple, call: Call) -> dict:
    function, instance = provided
    if function is None:
        return description_of_instance(instance)
    return {**_description_of_function(function, call), "config": config_schema(provider)}


def _description_of_function(tool: object, call: Call) -> dict:
    plain = getattr(tool, "func", tool)  # Of a partial.
    docstring = Docstring(getattr(plain, "__doc__", None))
    signature = signature_of(tool)
    if signature is None:
        return {"description": docstring.description}
    hidden, is_guess = hidden_parameters(tool, signature, sys.modules[call.module])
    artifacts = {
        each.name: kind_of(each)
        for each in artifact_parameters(signature)
        # A text for `Artifact | str` need be no filename.
        if each.name not in hidden and _TEXT not in each.words
    }
    given = [each for each in signature.parameters if each.name not in hidden]
    schemas = Schemas()
    properties = {
        each.name: _property(each, signature, schemas, docstring, artifacts.get(each.name))
        for each in given
    }
    required = [each.name for each in given if each.required]
    more = _other_names(tool, signature, schemas)
    for name, schema in more.pop("properties", {}).items():
        properties.setdefault(name, schema)
    required += [name for name in more.pop("required", ()) if name not in required]
    if is_guess:  # No property, so that agents do not fill it, and calls may.
        more["additionalProperties"] = True
    parameters = {"type": "object", "properties": properties, "required": required, **more}
    if not required:
        del parameters["required"]
    return {
        "description": docstring.description,
        "parameters": schemas.rooted(parameters),
        "result": result_schema(tool, signature.namespace),
        "artifact_parameters": artifact_members(artifacts),
    }


def _property(
    parameter: Parameter,
    signature: Signature,
    schemas: Schemas,
    docstring: Docstring,
    artifact: "tuple[bool, bool] | None",
) -> dict:
    """The schema of a parameter; `artifact` says whether it takes a list, and can do without."""
    is_open = parameter.annotation is None
    schema = {} if is_open else schemas.of(parameter.annotation, signature.namespace)
    if type(parameter.default).__name__ == _FIELD:
        schema = with_metadata(schema, (parameter.default,))
    text = schema.get("description") or docstring.parameters.get(parameter.name)
    if artifact:
        is_list, _ = artifact
        schema = schema or _filename(is_list)
        text = text or (_FILENAMES if is_list else _FILENAME)
    if text:
        schema = {**schema, "description": text}
    return schema if parameter.required else with_default(schema, parameter.default)


def _filename(is_list: bool) -> dict:
    filename = {"type": "string"}
    return {"type": "array", "items": filename} if is_list else filename


def _other_names(tool: object, signature: Signature, schemas: Schemas) -> dict:
    """Keywords for what `**kwargs` take: anything, values of a type, members of a TypedDict."""
    if not signature.takes_any_name:
        return {"additionalProperties": False}
    try:
        given = inspect.signature(tool).parameters.values()
        annotation = next(each.annotation for each in given if each.kind is each.VAR_KEYWORD)
        members = members_of_unpacked(annotation, signature.namespace)
        if members is None:
            return {"additionalProperties": schemas.of(annotation, signature.namespace) or True}
        reference = schemas.of(members, signature.namespace)["$ref"]
        taken = schemas.definitions.pop(reference.rpartition("/")[2])
    except Exception:
        return {"additionalProperties": True}
    named = {name: taken[name] for name in ("properties", "required") if name in taken}
    return {**named, "additionalProperties": False}
