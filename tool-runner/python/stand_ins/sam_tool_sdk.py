"""Stands in for the package of this name.

A tool of that package is a program that calls itself through `tool_cli` and its kin. Here a
manifest names the function or the class and the worker calls it, so these have nothing to do.
"""

from secure_tool_runtime.artifacts import (
    Artifact,
    ArtifactTypeInfo,
    get_artifact_info,
    is_artifact_type,
)
from secure_tool_runtime import class_tools
from secure_tool_runtime.class_tools import DynamicToolProvider
from secure_tool_runtime.facade import IPCError, SandboxToolContextFacade, ToolContextFacade
from secure_tool_runtime.results import DataDisposition
from secure_tool_runtime.sdk_results import DataObject, ToolResult

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
    "VolumeMount",
    "VolumeParam",
    "dynamic_tool_cli",
    "get_artifact_info",
    "is_artifact_type",
    "provider_cli",
    "register_tool",
    "tool_cli",
    "tool_timeout",
    "with_config_schema",
    "with_dynamic_schema",
    "with_volume_params",
]


class DynamicTool(class_tools.DynamicTool):
    """A class tool, whose `tool_context` is the context, too."""


class _Described:
    """Keeps what it is given. The worker makes nothing of it."""

    def to_dict(self) -> "dict[str, object]":
        """What was given."""
        return dict(self.__dict__)


class ConfigSchemaField(_Described):
    """Describes an entry of the tool's configuration."""

    def __init__(self, key: str, type: str = "string", **described: object) -> None:
        self.key = key
        self.type = type
        self.__dict__.update(described)


class VolumeParam(_Described):
    """Describes a volume that a platform would mount; here the manifest has `mounts`."""

    def __init__(
        self, name: str, mount_path: str, mode: str = "readonly", description: str = ""
    ) -> None:
        self.name = name
        self.mount_path = mount_path
        self.mode = mode
        self.description = description


class VolumeMount(_Described):
    """For annotations. No call brings one."""

    def __init__(self, volume_id: str, mount_path: str, read_only: bool = False) -> None:
        self.volume_id = volume_id
        self.mount_path = mount_path
        self.read_only = read_only


def register_tool(registered: object) -> object:
    """
    Registers a function with every provider, or, given a provider, is the decorator that registers
    with it.
    """
    if isinstance(registered, type):
        return registered.register_tool
    return DynamicToolProvider.register_tool(registered)


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


def with_volume_params(*_arguments: object, **_options: object) -> object:
    """A decorator without effect here: the manifest has `mounts`."""
    return _unchanged


def with_dynamic_schema(*_arguments: object, **_options: object) -> object:
    """
    A decorator without effect here: the agent's configuration describes the tool's parameters.
    """
    return _unchanged


def _unchanged(decorated: object) -> object:
    return decorated


def _no_command_line(*_arguments: object) -> None:
    raise SystemExit("this stand-in for sam_tool_sdk has no command line; a manifest names the tool")
