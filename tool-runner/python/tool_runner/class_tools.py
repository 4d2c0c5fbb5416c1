"""Tools that are classes."""

import sys

from .artifact_parameters import artifacts_for
from .errors import Failure, describe
from .protocol import Call

_METHOD = "_run_async_impl"
# Its programs hand the context over as `tool_context`, too; agents have a context of another kind.
_SDK = "sam_tool_sdk"


def bind_class(tool: type, call: Call, context: object) -> tuple:
    """The method of a class tool, with its positional and keyword arguments. Raises Failure, and
    what the class raises.
    """
    require_method(tool, call)
    return bind_instance(tool(tool_config=validated(tool, call.tool_config)), call, context)


def bind_instance(instance: object, call: Call, context: object) -> tuple:
    """The same for an instance of a class tool."""
    args = dict(call.args)
    make = getattr(sys.modules.get(type(instance).__module__), "Artifact", None)
    for name, (is_list, is_optional) in artifact_kinds(instance).items():
        if is_list:
            args.setdefault(name, [])
        args.update(artifacts_for(name, is_list, is_optional, make, call))
    context_name = getattr(instance, "ctx_facade_param_name", None)
    is_sdk = any(each.__module__.partition(".")[0] == _SDK for each in type(instance).__mro__)
    facade = None
    if context_name or is_sdk:
        from secure_tool_runtime.facade import SandboxToolContextFacade

        facade = SandboxToolContextFacade(context)
    if context_name:
        args[context_name] = facade
    return getattr(instance, _METHOD), (), {"args": args, "tool_context": facade if is_sdk else None}


def require_method(tool: type, call: Call) -> None:
    """Raises Failure for a class that is no tool."""
    if not callable(getattr(tool, _METHOD, None)):
        text = f'Class "{call.class_name}" of module "{call.module}" has no method "{_METHOD}"'
        if is_provider(tool):
            text = f'Class "{call.class_name}" provides several tools; name them by "tools" in the manifest'
        raise Failure("TOOL_NOT_FOUND", text)


def is_provider(tool: type) -> bool:
    """Whether a class makes tools, and is none itself."""
    return not callable(getattr(tool, _METHOD, None)) and callable(getattr(tool, "create_tools", None))


def artifact_kinds(instance: object) -> dict:
    """The parameters of a class tool that are artifacts: whether each is a list, and optional."""
    infos = getattr(instance, "artifact_params", None) or {}
    members = ("is_list", "is_optional")
    return {name: tuple(bool(getattr(info, each, False)) for each in members) for name, info in infos.items()}


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
