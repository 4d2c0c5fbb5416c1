"""
Functions that are registered with a class that provides tools: such a function gets an instance of
the class.
"""

import sys

from .class_tools import validated
from .protocol import Call

_REGISTERED = "_decorated_tools"


def provider_of(function: object, call: Call) -> tuple:
    """
    The configuration for the function, and its `self` as a dict of one; an empty dict where no
    class has it.

    Raises Failure for a configuration that the class does not take, and what making an instance
    raises.
    """
    provider = _class_of(function, sys.modules[call.module])
    if provider is None:
        return call.tool_config, {}
    tool_config = validated(provider, call.tool_config)
    instance = provider()
    instance._tool_config = tool_config
    return tool_config, {"self": instance}


def _class_of(function: object, module: object) -> "type | None":
    """
    The class of the module that the function is registered with; one of its own goes before one
    that it imports.
    """
    layers = [function]
    while hasattr(layers[-1], "__wrapped__"):
        layers.append(layers[-1].__wrapped__)

    def is_registered(each: type) -> bool:
        return any(one is layer for one in getattr(each, _REGISTERED, ()) for layer in layers)

    found = [each for each in vars(module).values() if isinstance(each, type) and is_registered(each)]
    # A subclass shares the list of its base; the class that was named has a list of its own.
    found.sort(key=lambda each: (each.__module__ != module.__name__, _REGISTERED not in vars(each)))
    return found[0] if found else None

