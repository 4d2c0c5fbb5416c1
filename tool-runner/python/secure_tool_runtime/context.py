"""The context of a call, which a tool is handed."""

import os

from .status_pipe import StatusPipe

# As in __init__.py: type checkers take it for true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .cancellation import Cancellation
    from .gateway.tools import Tools


class ToolContext:
    """
    What a tool knows of its call, and its ways to the outside: status updates, artifacts,
    configuration.

    The runner makes one per call. A test of a tool can make its own; every argument has a default.

    Attributes: `user_id`, `session_id`, `app_name` (the calling agent) and `task_id`, all str, as
    the caller sent them; `deadline`, epoch seconds at which the time limit ends the tool;
    `traceparent` and `tracestate`, the call's W3C trace context. The last three are None where
    there is none.
    """

    __slots__ = (
        "_artifact_metadata",
        "_artifact_paths",
        "_cancellation",
        "_config",
        "_output_dir",
        "_outputs",
        "_runner_pid",
        "_status",
        "_tools",
        "app_name",
        "deadline",
        "session_id",
        "task_id",
        "traceparent",
        "tracestate",
        "user_id",
    )

    def __init__(
        self,
        *,
        output_dir: str = "output",
        status_pipe: "str | None" = None,
        artifact_paths: "dict[str, str] | None" = None,
        artifact_metadata: "dict[str, dict[str, Any]] | None" = None,
        tool_config: "dict[str, Any] | None" = None,
        user_id: str = "",
        session_id: str = "",
        app_name: str = "",
        task_id: str = "",
        deadline: "float | None" = None,
        traceparent: "str | None" = None,
        tracestate: "str | None" = None,
        cancellation: "Cancellation | None" = None,
        runner_pid: "int | None" = None,
        tools: "Tools | None" = None,
    ) -> None:
        """For the runner: SIGTERM to the process `runner_pid` ends the call."""
        self._output_dir = output_dir
        self._status = StatusPipe(status_pipe)
        self._artifact_paths = artifact_paths or {}
        self._artifact_metadata = artifact_metadata or {}
        self._cancellation = cancellation
        self._config = tool_config or {}
        self._outputs: "dict[str, dict[str, str]]" = {}
        self._runner_pid = runner_pid
        self._tools = tools
        self.user_id: str = user_id
        self.session_id: str = session_id
        self.app_name: str = app_name
        self.task_id: str = task_id
        self.deadline: "float | None" = deadline
        self.traceparent: "str | None" = traceparent
        self.tracestate: "str | None" = tracestate

    def send_status(self, message: str) -> bool:
        """Tells the user how far the tool is. Best effort: False when nobody listens; never raises.

        A message that does not fit into a line of 4096 bytes is shortened and ends in "…". Blocks
        while the reader is behind.
        """
        return self._status.send(str(message))

    def report_progress(
        self, done: float, total: "float | None" = None, message: "str | None" = None
    ) -> bool:
        """
        A status that says how much is done, in units of the tool's own: `Reading (3 of 10)`, for
        programs also as numbers.

        False when it could not be sent, and for what is no finite number from 0; never raises.
        """
        from .statuses import progress_status

        return self._status.send_described(progress_status, done, total, message)

    def log(self, level: str, text: str, /, **fields: object) -> bool:
        """
        A status that is a line of a log: `Warning: Slow page (url=…)`, for programs also as level,
        text and fields.

        Levels are debug, info, warning and error; any other counts as info. Values of fields that
        are no text, number or boolean are sent as their text. False when it could not be sent.
        """
        from .statuses import log_status

        return self._status.send_described(log_status, level, text, fields)

    def partial_result(self, value: object) -> bool:
        """
        A status with a part of the result, as JSON of at most some 3 KB: with its text it has to
        fit into a line of 4096 bytes.

        False when it could not be sent, for None, for what does not fit or is no JSON; never
        raises.
        """
        from .statuses import partial_status

        return self._status.send_described(partial_status, value, is_whole=True)

    def load_artifact(self, param: str) -> "bytes | None":
        """The content of the artifact that was passed for a parameter; None when there is none.

        Artifacts of a list parameter are named `param[0]`, `param[1]`. Where no parameter has the
        name, an artifact with this filename is returned.
        """
        path = self._artifact_paths.get(param) or self._path_of_filename(param)
        if path is None:
            return None
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def load_artifact_text(self, param: str, encoding: str = "utf-8") -> "str | None":
        """
        Like `load_artifact`, decoded. Raises UnicodeDecodeError when the content is not in the
        encoding.
        """
        content = self.load_artifact(param)
        return None if content is None else content.decode(encoding)

    def save_artifact(
        self,
        filename: str,
        content: bytes,
        mime_type: "str | None" = None,
        description: "str | None" = None,
    ) -> str:
        """
        Saves an output artifact and returns its path. Saving a name again replaces what was there.

        `mime_type` defaults to what the filename's extension says. Raises ValueError for a filename
        that is not a plain name, TypeError for content that is not bytes.
        """
        from .filenames import check_filename

        check_filename(filename)
        if not isinstance(content, (bytes, bytearray, memoryview)):
            raise TypeError(
                f"content must be bytes, not {type(content).__name__}; save_artifact_text takes text"
            )
        path = os.path.join(self._output_dir, filename)
        with open(path, "wb") as file:
            file.write(content)
        said = {"mime_type": mime_type, "description": description}
        self._outputs[filename] = {key: str(value) for key, value in said.items() if value is not None}
        return path

    def save_artifact_text(
        self,
        filename: str,
        content: str,
        encoding: str = "utf-8",
        mime_type: "str | None" = None,
        description: "str | None" = None,
    ) -> str:
        """Like `save_artifact` for text. A filename without an extension is saved as text/plain."""
        if mime_type is None and "." not in filename:
            mime_type = "text/plain"
        return self.save_artifact(filename, content.encode(encoding), mime_type, description)

    def list_artifacts(self) -> "dict[str, str]":
        """Path of every input artifact by parameter name."""
        return dict(self._artifact_paths)

    def list_output_artifacts(self) -> "list[str]":
        """Names of the output artifacts that exist now, sorted."""
        with os.scandir(self._output_dir) as entries:
            return sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))

    def get_config(self, key: str, default: object = None) -> object:
        """A value of the tool's configuration, which may be a secret."""
        return self._config.get(key, default)

    def time_left(self) -> "float | None":
        """Seconds until the deadline, at least 0; None without one."""
        if self.deadline is None:
            return None
        import time

        return max(0.0, self.deadline - time.time())

    @property
    def tools(self) -> "Tools":
        """
        Other tools of the worker, if the manifest entry of this one has a `gateway`:
        `await ctx.tools.call(name, {…})`, or `ctx.tools.sync` without await.
        """
        if self._tools is not None:
            return self._tools
        from .gateway.tools import tools

        return tools

    @property
    def cancelled(self) -> bool:
        """
        Whether the call is being ended: its caller has cancelled it, or its time limit has passed.
        The process is killed three seconds later.

        To be told, a tool has to read this once in its main thread, or use `on_cancel`, before that
        happens. Otherwise the process ends at once.
        """
        return self._ending().cancelled

    def on_cancel(self, callback: "Callable[[], object]") -> None:
        """
        Calls it when `cancelled` becomes true, in a thread of its own, while the tool goes on; at
        once if it is true already. What it raises is printed. The process waits for it at its end.
        """
        self._ending().on_cancel(callback)

    def described_outputs(self) -> "dict[str, dict[str, str]]":
        """
        What was said of the saved artifacts, `mime_type` and `description`, by filename. For the
        runner.
        """
        return {filename: said for filename, said in self._outputs.items() if said}

    def _ending(self) -> "Cancellation":
        if self._cancellation is None:
            from .cancellation import Cancellation, of_process

            pid = self._runner_pid
            self._cancellation = Cancellation() if pid is None else of_process(pid)
        return self._cancellation

    def _path_of_filename(self, filename: str) -> "str | None":
        for param, metadata in self._artifact_metadata.items():
            if metadata.get("filename") == filename:
                return self._artifact_paths.get(param)
        for path in self._artifact_paths.values():
            if os.path.basename(path) == filename:
                return path
        return None
