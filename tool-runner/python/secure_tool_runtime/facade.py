"""
The context of tools that ask for it by the annotation `ToolContextFacade`: artifacts by filename,
with await.
"""

import os
import sys

from . import ToolContext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, overload

    from .gateway.tools import Tools


class IPCError(RuntimeError):
    """The runtime has nobody at the other end for what the tool asks."""


class ToolContextFacade:
    """
    What a tool knows of its call, and its ways to the outside. Loading is asynchronous, all else is
    not.

    The runner makes one per call. A test of a tool can make its own around a `ToolContext`.

    Attributes: `user_id`, `session_id`, `app_name` (the calling agent), `task_id`, `deadline`,
    `traceparent` and `tracestate`, as in ToolContext;
    `user_profile`, which agents do not send to this runtime and which is empty; `state`, a dict for
    the tool, which begins empty with each call; `raw_tool_context`, None, since there is no agent
    in this process.
    """

    def __init__(self, context: "ToolContext | None" = None) -> None:
        self._context = ToolContext() if context is None else context
        self.user_id: str = self._context.user_id
        self.session_id: str = self._context.session_id
        self.app_name: str = self._context.app_name
        self.task_id: str = self._context.task_id
        self.deadline: "float | None" = self._context.deadline
        self.traceparent: "str | None" = self._context.traceparent
        self.tracestate: "str | None" = self._context.tracestate
        self.user_profile: "dict[str, object]" = {}
        self.state: "dict[str, object]" = {}
        self.raw_tool_context: None = None

    @property
    def a2a_context(self) -> "object | None":
        """
        What the tool itself has put into `state` under this name: this runtime gets none from
        agents.
        """
        return self.state.get("a2a_context")

    @property
    def auth_token(self) -> str:
        """Empty: this runtime gets no token of the caller's."""
        return ""

    @property
    def volume_mounts(self) -> "list[object]":
        """None: an operator mounts directories by the manifest."""
        return []

    if TYPE_CHECKING:

        @overload
        async def load_artifact(
            self, filename: str, version: int | str = ..., as_text: Literal[False] = ...
        ) -> bytes: ...

        @overload
        async def load_artifact(
            self, filename: str, version: int | str = ..., *, as_text: Literal[True]
        ) -> str: ...

    async def load_artifact(
        self, filename: str, version: "int | str" = "latest", as_text: bool = False
    ) -> "bytes | str":
        """The content of the input artifact with this filename, as UTF-8 text if asked for.

        The artifacts of a call are those that it brings, so `version` only chooses between these. A
        parameter's name will do for the filename. Raises FileNotFoundError when the call brings no
        such artifact.
        """
        path, _metadata = self._find(filename, version)
        with open(path, "rb") as file:
            content = file.read()
        return content.decode("utf-8") if as_text else content

    async def load_artifact_metadata(
        self, filename: str, version: "int | str" = "latest"
    ) -> "dict[str, object]":
        """
        `filename`, `mime_type`, `size_bytes` and `version` of an input artifact. Raises
        FileNotFoundError.
        """
        path, metadata = self._find(filename, version)
        return {
            "filename": metadata.get("filename", filename),
            "mime_type": metadata.get("mime_type", "application/octet-stream"),
            "size_bytes": os.path.getsize(path),
            "version": metadata.get("version", 0),
        }

    async def list_artifacts(self) -> "list[str]":
        """Filenames of the input artifacts."""
        return list(dict.fromkeys(filename for filename, _path, _metadata in self._inputs()))

    async def artifact_exists(self, filename: str) -> bool:
        """Whether the call brings an artifact with this filename."""
        return any(filename == each for each, _path, _metadata in self._inputs())

    def load_artifact_by_param(self, param: str) -> "bytes | None":
        """The content of the artifact that was passed for a parameter; None when there is none."""
        return self._context.load_artifact(param)

    def save_artifact(
        self,
        filename: str,
        content: bytes,
        mime_type: "str | None" = None,
        description: "str | None" = None,
    ) -> str:
        """As in ToolContext."""
        return self._context.save_artifact(filename, content, mime_type, description)

    def save_artifact_text(
        self,
        filename: str,
        content: str,
        encoding: str = "utf-8",
        mime_type: "str | None" = None,
        description: "str | None" = None,
    ) -> str:
        """As in ToolContext."""
        return self._context.save_artifact_text(filename, content, encoding, mime_type, description)

    def list_output_artifacts(self) -> "list[str]":
        """As in ToolContext."""
        return self._context.list_output_artifacts()

    def get_config(self, key: str, default: object = None) -> object:
        """As in ToolContext."""
        return self._context.get_config(key, default)

    def get_config_string(self, key: str, default: str = "") -> str:
        """A text of the tool's configuration; the default for anything else."""
        value = self.get_config(key, default)
        return value if isinstance(value, str) else default

    def get_auth_token(self) -> str:
        """As `auth_token`."""
        return self.auth_token

    def get_volume_mount_path(self, mount_path: str) -> "str | None":
        """None, as there is no volume."""
        return None

    def send_status(self, message: str) -> bool:
        """As in ToolContext."""
        return self._context.send_status(message)

    def report_progress(
        self, done: float, total: "float | None" = None, message: "str | None" = None
    ) -> bool:
        """As in ToolContext."""
        return self._context.report_progress(done, total, message)

    def log(self, level: str, text: str, /, **fields: object) -> bool:
        """As in ToolContext."""
        return self._context.log(level, text, **fields)

    def partial_result(self, value: object) -> bool:
        """As in ToolContext."""
        return self._context.partial_result(value)

    def time_left(self) -> "float | None":
        """As in ToolContext."""
        return self._context.time_left()

    @property
    def tools(self) -> "Tools":
        """As in ToolContext."""
        return self._context.tools

    @property
    def cancelled(self) -> bool:
        """As in ToolContext."""
        return self._context.cancelled

    def on_cancel(self, callback: "Callable[[], object]") -> None:
        """As in ToolContext."""
        self._context.on_cancel(callback)

    def send_signal(self, signal_data: object, skip_buffer_flush: bool = False) -> bool:
        """False: this runtime carries no signals."""
        return False

    def call_llm(self, *_arguments: object, **_options: object) -> str:
        """
        Raises IPCError: this runtime has no language model for its tools. It is the installed
        package's own class, if the tool has one of these.
        """
        kind = getattr(sys.modules.get("sam_tool_sdk"), "IPCError", IPCError)
        raise kind("this runtime has no language model for its tools; call_llm cannot be answered")

    def _inputs(self) -> "list[tuple[str, str, dict[str, Any]]]":
        """Filename, path and metadata of each input artifact."""
        inputs = []
        for param, path in self._context._artifact_paths.items():
            metadata = self._context._artifact_metadata.get(param, {})
            inputs.append((metadata.get("filename", os.path.basename(path)), path, metadata))
        return inputs

    def _find(self, filename: str, version: "int | str") -> "tuple[str, dict[str, Any]]":
        found = [(path, metadata) for each, path, metadata in self._inputs() if each == filename]
        if not found and filename in self._context._artifact_paths:
            path = self._context._artifact_paths[filename]
            found = [(path, self._context._artifact_metadata.get(filename, {}))]
        if not found:
            raise FileNotFoundError(f"artifact {filename!r} is not among the inputs of this call")
        found.sort(key=lambda each: each[1].get("version", 0))
        if version in ("latest", None):
            return found[-1]
        for path, metadata in found:
            if str(metadata.get("version", version)) == str(version):
                return path, metadata
        brought = ", ".join(str(metadata["version"]) for _path, metadata in found)
        raise FileNotFoundError(
            f"artifact {filename!r} is not among the inputs of this call in version {version}, only in {brought}"
        )


class SandboxToolContextFacade(ToolContextFacade):
    """The same, under the name that the original gives it in a sandbox. What the runner makes."""


class SynchronousFacade(SandboxToolContextFacade):
    """For a function that is not `async` and cannot await: loading is as in ToolContext."""

    def load_artifact(self, param: str) -> "bytes | None":
        """As in ToolContext."""
        return self._context.load_artifact(param)

    def load_artifact_text(self, param: str, encoding: str = "utf-8") -> "str | None":
        """As in ToolContext."""
        return self._context.load_artifact_text(param, encoding)

    def list_artifacts(self) -> "dict[str, str]":
        """As in ToolContext."""
        return self._context.list_artifacts()
