"""What calls of other tools return and raise."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ToolCallError(Exception):
    """A call of another tool that failed, was refused or was cancelled; its text says why.

    Attributes: `code`, one of docs/protocol.md or NOT_ALLOWED, LIMIT_REACHED, GATEWAY_CLOSED;
    `retryable`, whether the same call may succeed later; `data`, facts by name; `op`, the step
    that failed; `steps`, of a chain, what each step came to.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool = False,
        data: "dict[str, Any] | None" = None,
        op: "str | None" = None,
        steps: "list[dict[str, Any]] | None" = None,
    ) -> None:
        super().__init__(message)
        self.code: str = code
        self.retryable: bool = retryable
        self.data: "dict[str, Any]" = {} if data is None else data
        self.op: "str | None" = op
        self.steps: "list[dict[str, Any]]" = [] if steps is None else steps

    def __reduce__(self) -> "tuple[type[ToolCallError], tuple[str, str], dict[str, Any]]":
        # It may cross to another process, as those of `multiprocessing` pools do.
        return (type(self), (self.code, str(self)), self.__dict__)


if TYPE_CHECKING:
    _Members = dict[str, Any]
else:
    _Members = dict


class ToolCallResult(_Members):
    """What a tool returned: a dict that belongs to the caller.

    `artifacts` are those that the call created: `filename`, `version`, `mime_type`, `size_bytes`.
    """

    def __init__(
        self, structured: "dict[str, Any]", artifacts: "list[dict[str, Any]] | None" = None
    ) -> None:
        super().__init__(structured)
        self.artifacts: "list[dict[str, Any]]" = [] if artifacts is None else artifacts


class ChainResult(ToolCallResult):
    """What the last tool of a chain returned. `steps` has a dict for each step: `tool`,
    `structured`, `artifacts`.
    """

    def __init__(
        self,
        structured: "dict[str, Any]",
        artifacts: "list[dict[str, Any]] | None" = None,
        steps: "list[dict[str, Any]] | None" = None,
    ) -> None:
        super().__init__(structured, artifacts)
        self.steps: "list[dict[str, Any]]" = [] if steps is None else steps
