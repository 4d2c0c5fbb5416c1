"""The base classes of class tools."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from .artifacts import ArtifactTypeInfo

    _Function = TypeVar("_Function")


class DynamicTool:
    """
    A tool that is a class: the runner makes an instance with the configuration and awaits
    `_run_async_impl`.

    A subclass says by `ctx_facade_param_name` which entry of `args` gets the context and by
    `artifact_params`, or `artifact_args` for single ones, which get artifacts. `tool_description`
    and `parameters_schema` describe it to agents. The other members are for an agent that loads the
    tool itself; the worker does not use them.
    """

    # A class to validate the configuration with, such as a pydantic model; the tool gets its
    # instance.
    config_model: "type | None" = None

    def __init__(self, tool_config: "Any" = None) -> None:
        self.tool_config: "Any" = tool_config or {}

    tool_name: str = ""
    tool_description: str = ""
    parameters_schema: object = None
    raw_string_args: "list[str]" = []
    resolution_type: object = "early"
    ctx_facade_param_name: "str | None" = None
    artifact_args: "list[str]" = []
    auth_config: "dict[str, Any] | None" = None
    config_schema: "list[Any] | None" = None
    timeout_seconds: "int | None" = None
    volume_params: "list[Any] | None" = None

    @property
    def artifact_params(self) -> "dict[str, ArtifactTypeInfo]":
        """How each parameter that is an artifact is taken, by name."""
        from .artifacts import ArtifactTypeInfo

        return {name: ArtifactTypeInfo(is_artifact=True) for name in self.artifact_args}

    async def init(self, component: object, tool_config: object) -> None:
        """For an agent that loads the tool itself. The worker awaits it to describe the tool,
        and in no call.
        """

    async def cleanup(self, component: object, tool_config: object) -> None:
        """For an agent that loads the tool itself. The worker never calls it."""

    def dynamic_schema(self, config: "dict[str, Any]") -> "dict[str, Any] | None":
        """For a platform that asks the tool for its schema. The worker never calls it."""
        return None

    async def _run_async_impl(
        self, args: "dict[str, Any]", tool_context: object = None, credential: "str | None" = None
    ) -> object:
        raise NotImplementedError(f"{type(self).__name__} has no _run_async_impl of its own")


class DynamicToolProvider:
    """A class that provides several tools: functions that are registered with it, by their names,
    and those that `create_tools` makes, by their `tool_name`.

    An entry of the manifest names the class and, in `tools`, the tools. For each call the worker
    makes an instance without arguments, whose `_tool_config` is the configuration.
    """

    config_model: "type | None" = None
    auth_config: "dict[str, Any] | None" = None
    config_schema: "list[Any] | None" = None
    _decorated_tools: "list[object]" = []

    def __init__(self, tool_config: "Any" = None) -> None:
        self._tool_config: "Any" = tool_config or {}

    @classmethod
    def register_tool(cls, func: "_Function") -> "_Function":
        """A decorator. The function stays what it is, and can be named by a manifest."""
        cls._decorated_tools = [*cls._decorated_tools, func]
        return func

    def dynamic_schema(self, config: "dict[str, Any]") -> "dict[str, Any] | None":
        """For a platform that asks the tools for their schemas. The worker never calls it."""
        return None

    def create_tools(self, tool_config: "Any" = None) -> "list[Any]":
        """More tools, made for the configuration."""
        return []
