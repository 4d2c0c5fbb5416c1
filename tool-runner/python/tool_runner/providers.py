"""Classes that provide several tools: functions registered with them, and tools that they make."""

import sys

from .class_tools import validated
from .errors import Failure
from .protocol import Call

_REGISTERED = "_decorated_tools"


def provided_by(provider: type, call: Call) -> tuple:
    """The registered function of the tool `call.tool_name`, or None and the class tool that the
    provider makes. Raises Failure, and what the class raises.
    """
    registered = _registered_with(provider)
    if call.tool_name in registered:
        return registered[call.tool_name], None
    made = _made_by(provider, call)
    if call.tool_name in made:
        return None, made[call.tool_name]
    names = ", ".join(sorted([*registered, *made])) or "none"
    text = f'Class "{call.class_name}" provides no tool "{call.tool_name}"; its tools: {names}'
    raise Failure("TOOL_NOT_FOUND", text)


def all_provided(provider: type, call: Call) -> dict:
    """Every tool by its name, each as `provided_by` returns it. Raises what that raises."""
    made = {name: (None, tool) for name, tool in _made_by(provider, call).items()}
    return {**made, **{name: (each, None) for name, each in _registered_with(provider).items()}}


def _registered_with(provider: type) -> dict:
    return {each.__name__: each for each in getattr(provider, _REGISTERED, ())}


def _made_by(provider: type, call: Call) -> dict:
    if not callable(getattr(provider, "create_tools", None)):
        return {}
    tool_config, instance = _instance_of(provider, call)
    return {each.tool_name: each for each in instance.create_tools(tool_config)}


def provider_of(function: object, call: Call) -> tuple:
    """The configuration for a function, and an instance of the class that provides it, or None:
    the class that the call names, or the one that the function is registered with. Raises Failure
    for the configuration, and what the class raises.
    """
    module = sys.modules[call.module]
    provider = getattr(module, call.class_name) if call.class_name else provider_class(function, module)
    return (call.tool_config, None) if provider is None else _instance_of(provider, call)


def _instance_of(provider: type, call: Call) -> tuple:
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
