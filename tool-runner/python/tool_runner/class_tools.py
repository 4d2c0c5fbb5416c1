"""Tools that are classes: an instance with the configuration, and what its method gets."""

import sys

from .artifact_parameters import artifacts_for
from .protocol import Call, Failure, describe

_METHOD = "_run_async_impl"


def bind_class(tool: type, call: Call, context: object) -> tuple:
    """
    The method to call and its keyword arguments. Raises Failure, BadArguments and what the class
    raises.
    """
    if not callable(getattr(tool, _METHOD, None)):
        raise Failure(
            "TOOL_NOT_FOUND",
            f'Class "{call.class_name}" of module "{call.module}" has no method "{_METHOD}"',
        )
    instance = tool(tool_config=validated(tool, call.tool_config))
    args = dict(call.args)
    make = getattr(sys.modules.get(tool.__module__), "Artifact", None)
    for name, info in (getattr(instance, "artifact_params", None) or {}).items():
        is_list, is_optional = (bool(getattr(info, each, False)) for each in ("is_list", "is_optional"))
        if is_list:
            args.setdefault(name, [])
        args.update(artifacts_for(name, is_list, is_optional, make, call))
    wants_context = getattr(instance, "ctx_facade_param_name", None)
    if wants_context:
        from secure_tool_runtime.facade import SandboxToolContextFacade

        args[wants_context] = SandboxToolContextFacade(context)
    return getattr(instance, _METHOD), {"args": args, "tool_context": None}


def validated(tool: type, tool_config: dict) -> object:
    """
    The configuration as an instance of the class's `config_model`, if it has one. Raises Failure.
    """
    model = getattr(tool, "config_model", None)
    if model is None:
        return tool_config
    validate = getattr(model, "model_validate", None)
    try:
        return validate(tool_config) if validate else model(**tool_config)
    except Exception as error:
        # Without a cause: a traceback would show the configuration, which may hold secrets.
        raise Failure(
            "EXECUTION_ERROR",
            f"The tool's configuration is not a {model.__name__}: {_reasons(error)}",
        ) from None


def _reasons(error: Exception) -> str:
    """What is wrong with a configuration, without the values that pydantic's own text repeats."""
    errors = getattr(error, "errors", None)
    if not callable(errors):
        return describe(error)
    return "; ".join(
        f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in errors()
    )
