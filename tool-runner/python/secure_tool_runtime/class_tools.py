"""The base classes of class tools."""


class DynamicTool:
    """
    A tool that is a class: the runner makes an instance with the configuration and awaits
    `_run_async_impl`.

    A subclass says by `ctx_facade_param_name` which entry of `args` gets the context and by
    `artifact_params`, or `artifact_args` for single ones, which get artifacts. The other members
    describe the tool to an agent that loads it itself; the worker does not use them.
    """

    # A class to validate the configuration with, such as a pydantic model; the tool gets its
    # instance.
    config_model = None

    def __init__(self, tool_config: object = None) -> None:
        self.tool_config = tool_config or {}

    tool_name = ""
    tool_description = ""
    parameters_schema = None
    raw_string_args: "list[str]" = []
    resolution_type = "early"
    ctx_facade_param_name: "str | None" = None
    artifact_args: "list[str]" = []
    auth_config: "dict | None" = None
    config_schema: "list | None" = None
    timeout_seconds: "int | None" = None
    volume_params: "list | None" = None

    @property
    def artifact_params(self) -> dict:
        """How each parameter that is an artifact is taken, by name."""
        from .artifacts import ArtifactTypeInfo

        return {name: ArtifactTypeInfo(is_artifact=True) for name in self.artifact_args}

    async def init(self, component: object, tool_config: object) -> None:
        """For an agent that loads the tool itself. The worker never calls it."""

    async def cleanup(self, component: object, tool_config: object) -> None:
        """For an agent that loads the tool itself. The worker never calls it."""

    def dynamic_schema(self, config: dict) -> "dict | None":
        """For a platform that asks the tool for its schema. The worker never calls it."""
        return None

    async def _run_async_impl(
        self, args: dict, tool_context: object = None, credential: "str | None" = None
    ) -> object:
        raise NotImplementedError(f"{type(self).__name__} has no _run_async_impl of its own")


class DynamicToolProvider:
    """A class that provides several tools: functions that are registered with it, by their names,
    and those that `create_tools` makes, by their `tool_name`.

    An entry of the manifest names the class and, in `tools`, the tools. For each call the worker
    makes an instance without arguments, whose `_tool_config` is the configuration.
    """

    config_model = None
    auth_config: "dict | None" = None
    config_schema: "list | None" = None
    _decorated_tools: list = []

    def __init__(self, tool_config: object = None) -> None:
        self._tool_config = tool_config or {}

    @classmethod
    def register_tool(cls, function: object) -> object:
        """A decorator. The function stays what it is, and can be named by a manifest."""
        cls._decorated_tools = [*cls._decorated_tools, function]
        return function

    def dynamic_schema(self, config: dict) -> "dict | None":
        """For a platform that asks the tools for their schemas. The worker never calls it."""
        return None

    def create_tools(self, tool_config: object = None) -> list:
        """More tools, made for the configuration."""
        return []
