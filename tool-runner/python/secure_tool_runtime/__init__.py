"""What a tool may import from its runner: the context it is handed and the error it may raise.

What only some tools need is in the modules beside this one and is loaded when it is asked for by
name: `from secure_tool_runtime import ToolResult`.
"""

import os

from .context import ToolContext

# Type checkers take it for true. An import of `typing` takes milliseconds of each cold start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from .artifacts import Artifact, ArtifactTypeInfo, get_artifact_info, is_artifact_type
    from .cancellation import Cancellation
    from .class_tools import DynamicTool, DynamicToolProvider
    from .facade import ToolContextFacade
    from .gateway.results import ToolCallError, ToolCallResult
    from .gateway.tools import Tools, tools
    from .results import TOOL_RESULT_SCHEMA_VERSION, DataDisposition, DataObject, ToolResult

__all__ = [
    "TOOL_RESULT_SCHEMA_VERSION",
    "Artifact",
    "ArtifactTypeInfo",
    "Cancellation",
    "DataDisposition",
    "DataObject",
    "DynamicTool",
    "DynamicToolProvider",
    "ToolCallError",
    "ToolCallResult",
    "ToolContext",
    "ToolContextFacade",
    "ToolError",
    "ToolResult",
    "Tools",
    "get_artifact_info",
    "is_artifact_type",
    "tools",
]

# Packages that tools of the original import, and that need not be installed.
_STAND_INS = ("google", "sam_tool_sdk", "solace_agent_mesh")

_MODULE_OF = {
    "Artifact": "artifacts",
    "ArtifactTypeInfo": "artifacts",
    "Cancellation": "cancellation",
    "DataDisposition": "results",
    "DataObject": "results",
    "DynamicTool": "class_tools",
    "DynamicToolProvider": "class_tools",
    "TOOL_RESULT_SCHEMA_VERSION": "results",
    "ToolCallError": "gateway.results",
    "ToolCallResult": "gateway.results",
    "ToolContextFacade": "facade",
    "ToolResult": "results",
    "Tools": "gateway.tools",
    "get_artifact_info": "artifacts",
    "is_artifact_type": "artifacts",
    "tools": "gateway.tools",
}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(__import__(f"{__name__}.{_MODULE_OF[name]}", fromlist=[name]), name)


class StandIns:
    """
    Finds a module of `stand_ins` where nothing else finds one, so that an installed package wins,
    or its parts do.

    For the end of `sys.meta_path`. On `sys.path`, the stand-ins would hide what a tool adds behind
    them, and a package found before them would hide them even where it lacks the module.
    """

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> "ModuleSpec | None":
        """As importlib wants it."""
        parent, _, _ = name.rpartition(".")
        if name.partition(".")[0] not in _STAND_INS:
            return None
        from _frozen_importlib_external import PathFinder

        directory = os.path.dirname(os.path.dirname(__file__))
        return PathFinder.find_spec(name, [os.path.join(directory, "stand_ins", *parent.split("."))])


class ToolError(Exception):
    """A failure that the tool reports on purpose.

    The caller gets the error's text with the code TOOL_ERROR and nothing else. Any other exception
    is answered as EXECUTION_ERROR with the exception's class and text, since nobody decided that it
    should reach the caller.
    """
