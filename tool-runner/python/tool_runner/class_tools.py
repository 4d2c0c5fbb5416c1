"""Tools that are classes, and functions that are registered with a class that provides tools."""

import sys

from .artifact_parameters import artifacts_for
from .errors import Failure, describe
from .protocol import Call

_METHOD = "_run_async_impl"
_REGISTERED = "_decorated_tools"


def bind_class(tool: type, call: Call, context: object) -> tuple:
    """The method of a class tool, with its positional and keyword arguments. Raises Failure, and
    what the class raises.
    """
    require_method(tool, call)
    instance = tool(tool_config=validated(tool, call.tool_config))
    args = dict(call.args)
    make = getattr(sys.modules.get(tool.__module__), "Artifact", None)
    for name, (is_list, is_optional) in artifact_kinds(instance).items():
        if is_list:
            args.setdefault(name, [])
        args.update(artifacts_for(name, is_list, is_optional, make, call))
    context_name = getattr(instance, "ctx_facade_param_name", None)
    if context_name:
        from secure_tool_runtime.facade import SandboxToolContextFacade

        args[context_name] = SandboxToolContextFacade(context)
    return getattr(instance, _METHOD), (), {"args": args, "tool_context": None}


def require_method(tool: type, call: Call) -> None:
    """Raises Failure for a class that is no tool."""
    if not callable(getattr(tool, _METHOD, None)):
        text = f'Class "{call.class_name}" of module "{call.module}" has no method "{_METHOD}"'
        raise Failure("TOOL_NOT_FOUND", text)


def artifact_kinds(instance: object) -> dict:
    """The parameters of a class tool that are artifacts: whether each is a list, and optional."""
    infos = getattr(instance, "artifact_params", None) or {}
    members = ("is_list", "is_optional")
    return {name: tuple(bool(getattr(info, each, False)) for each in members) for name, info in infos.items()}


def provider_of(function: object, call: Call) -> tuple:
    """The configuration for a function, and an instance of the class that it is registered with,
    or None. Raises Failure for the configuration, and what the class raises.
    """
    provider = provider_class(function, sys.modules[call.module])
    if provider is None:
        return call.tool_config, None
    tool_config = validated(provider, call.tool_config)
    instance = provider()
    instance._tool_config = tool_config
    return tool_config, instance


def provider_class(function: object, module: object) -> "type | None":
    """The class that has registered the function; the module's own goes before an imported one."""
    layers = [function]
    while hasattr(layers[-1], "__wrapped__"):
        layers.append(layers[-1].__wrapped__)

    def is_registered(each: type) -> bool:
        return any(one is layer for one in getattr(each, _REGISTERED, ()) for layer in layers)

    found = [each for each in vars(module).values() if isinstance(each, type) and is_registered(each)]
    # A subclass shares the list of its base. The class that registered it has its own list.
    found.sort(key=lambda each: (each.__module__ != module.__name__, _REGISTERED not in vars(each)))
    return found[0] if found else None


def validated(tool: type, tool_config: dict) -> object:
    """The configuration as an instance of the class's `config_model`, if any. Raises Failure."""
    model = getattr(tool, "config_model", None)
    if model is None:
        return tool_config
    validate = getattr(model, "model_validate", None)
    try:
        return validate(tool_config) if validate else model(**tool_config)
    except Exception as error:
        # Without a cause: a traceback would show the configuration, which may hold secrets.
        text = f"The tool's configuration is not a {model.__name__}: {_reasons(error)}"
        raise Failure("EXECUTION_ERROR", text) from None


def _reasons(error: Exception) -> str:
    """What is wrong, without the values, which pydantic's own text repeats."""
    errors = getattr(error, "errors", None)
    if not callable(errors):
        return describe(error)
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in errors())
