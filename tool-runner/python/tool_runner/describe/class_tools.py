"""Class tools: what their attributes say, of an instance where one can be made."""

import asyncio
import inspect

from ..class_tools import artifact_kinds, require_method, validated
from ..errors import print_traceback
from ..protocol import Call
from .docstrings import Docstring
from .foreign import plain_schema
from .schemas import Schemas


def description_of_class(tool: type, call: Call) -> dict:
    """What is known of a class tool. Raises Failure for a class that is none."""
    require_method(tool, call)
    return description_of_instance(_instance_of(tool, call) or tool)


def description_of_instance(source: object) -> dict:
    """What a class tool says of itself: an instance, or the class where there is none."""
    tool = source if isinstance(source, type) else type(source)
    text = _member(source, "tool_description")
    kinds = artifact_kinds(source) if source is not tool else {}
    hidden = _member(source, "ctx_facade_param_name")
    return {
        "description": text if isinstance(text, str) and text else Docstring(vars(tool).get("__doc__")).description,
        "parameters": _parameters(_member(source, "parameters_schema"), hidden),
        "config": config_schema(tool),
        "artifact_parameters": artifact_members(kinds),
    }


def artifact_members(kinds: "dict[str, tuple[bool, bool]]") -> dict:
    """The artifact parameters, as the answer has them."""
    return {
        name: {"is_list": is_list, "is_optional": is_optional}
        for name, (is_list, is_optional) in kinds.items()
    }


def _instance_of(tool: type, call: Call) -> object:
    """An instance that has done what an agent has it do at its start; None where that fails, such
    as for a configuration that is not there.
    """
    try:
        tool_config = validated(tool, call.tool_config)
        instance = tool(tool_config=tool_config)
    except Exception:
        return None
    init = getattr(instance, "init", None)
    if inspect.iscoroutinefunction(init):
        try:
            asyncio.run(init(component=None, tool_config=tool_config))
        except Exception as error:
            print_traceback(error)  # It may say of itself what it does not need this for.
    return instance


def _member(source: object, name: str) -> object:
    """An attribute; None for the property of a class, and for one that cannot be read."""
    try:
        value = getattr(source, name, None)
    except Exception:
        return None
    return None if isinstance(value, property) else value


def _parameters(given: object, hidden: object) -> "dict | None":
    """A schema of any generation: a model, what has a `to_dict`, or a dict."""
    if given is None:
        return None
    try:
        if callable(getattr(given, "model_dump", None)):
            given = given.model_dump(exclude_none=True)
        elif callable(getattr(given, "to_dict", None)):
            given = given.to_dict()
        schema = plain_schema(given)
    except Exception:
        return None
    if not schema or schema.setdefault("type", "object") != "object":
        return None
    properties = schema.get("properties")
    if isinstance(hidden, str) and isinstance(properties, dict) and properties.pop(hidden, None) is not None:
        schema["required"] = [name for name in schema.get("required") or [] if name != hidden]
    return schema


def config_schema(tool: type) -> "dict | None":
    """The schema of what a class is configured with; None where it does not say it."""
    model = getattr(tool, "config_model", None)
    if not isinstance(model, type):
        return None
    schemas = Schemas()
    schema = schemas.rooted(schemas.of(model, {}))
    return schema if schema.get("type") == "object" else None
