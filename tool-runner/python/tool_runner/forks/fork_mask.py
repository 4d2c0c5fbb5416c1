"""Signals that a process blocks while it forks, and that its child must not find blocked."""

import _signal
import os


class ForkMask:
    """
    To be made before the tool's module is loaded: handlers of `os.register_at_fork` run in their
    order, and the module's may start threads and programs, which have the mask for good."""

    def __init__(self) -> None:
        self._before: "set[int] | None" = None
        os.register_at_fork(after_in_child=self._restore)

    def block(self, signals: "tuple[int, ...]") -> None:
        """Blocks them here, until the next child."""
        self._before = _signal.pthread_sigmask(_signal.SIG_BLOCK, signals)

    def _restore(self) -> None:
        if self._before is not None:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, self._before)
            self._before = None
