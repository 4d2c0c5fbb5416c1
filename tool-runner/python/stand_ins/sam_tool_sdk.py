"""Stands in for the package of this name.

A tool of that package is a program that calls itself through `tool_cli` and its kin. Here a manifest names the
function or the class and the worker calls it, so these have nothing to do.
"""

from secure_tool_runtime.artifacts import Artifact, ArtifactTypeInfo
from secure_tool_runtime.class_tools import DynamicTool, DynamicToolProvider
from secure_tool_runtime.facade import IPCError, SandboxToolContextFacade, ToolContextFacade
from secure_tool_runtime.results import DataDisposition, DataObject, ToolResult

__all__ = [
    "Artifact",
    "ArtifactTypeInfo",
    "ConfigSchemaField",
    "DataDisposition",
    "DataObject",
    "DynamicTool",
    "DynamicToolProvider",
    "IPCError",
    "SandboxToolContextFacade",
    "ToolContextFacade",
    "ToolResult",
    "dynamic_tool_cli",
    "provider_cli",
    "register_tool",
    "tool_cli",
    "tool_timeout",
    "with_config_schema",
    "with_dynamic_schema",
]


class ConfigSchemaField:
    """Describes an entry of the tool's configuration. The worker makes nothing of it."""

    def __init__(self, key: str, type: str = "string", **described: object) -> None:
        self.key = key
        self.type = type
        self.__dict__.update(described)

    def to_dict(self) -> "dict[str, object]":
        """What was given."""
        return dict(self.__dict__)


def register_tool(provider: type) -> object:
    """A decorator that registers a function with a provider. The function stays what it is."""
    return provider.register_tool


def tool_cli(_function: object, **_options: object) -> object:
    """The command line of a function; it cannot be used here."""
    return _no_command_line


def dynamic_tool_cli(_tool: object, **_options: object) -> object:
    """The command line of a class tool; it cannot be used here."""
    return _no_command_line


def provider_cli(_provider: object, **_options: object) -> object:
    """The command line of a provider; it cannot be used here."""
    return _no_command_line


def tool_timeout(*_arguments: object, **_options: object) -> object:
    """A decorator without effect here: the manifest has `timeout_seconds`."""
    return _unchanged


def with_config_schema(*_arguments: object, **_options: object) -> object:
    """A decorator without effect here: the agent's `tool_config` reaches the tool as it is."""
    return _unchanged


def with_dynamic_schema(*_arguments: object, **_options: object) -> object:
    """A decorator without effect here: the agent's configuration describes the tool's parameters."""
    return _unchanged


def _unchanged(decorated: object) -> object:
    return decorated


def _no_command_line(*_arguments: object) -> None:
    raise SystemExit("this stand-in for sam_tool_sdk has no command line; a manifest names the tool")
