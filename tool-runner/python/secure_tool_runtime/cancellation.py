"""How a tool learns that its call is being ended, by its caller or at its time limit."""

# `signal` without its enumerations, whose import takes a cold call from 56 to 66 ms.
import _signal
import _thread
import atexit
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Cancellation:
    """Whether a call is being ended, and whom to tell. A test of a tool makes and cancels one."""

    def __init__(self) -> None:
        self.cancelled: bool = False
        self._callbacks: "list[Callable[[], object]]" = []

    def __reduce__(self) -> "tuple[type[Cancellation], tuple[()]]":
        # Another process is not told.
        return (Cancellation, ())

    def on_cancel(self, callback: "Callable[[], object]") -> None:
        """Calls it once when the call is being ended; at once if that is so already."""
        self._callbacks.append(callback)
        if self.cancelled:
            self._call_back()

    def cancel(self) -> None:
        """Calls back, in this thread. What a callback raises is printed."""
        self.cancelled = True
        self._call_back()

    def _call_back(self) -> None:
        while True:
            try:
                callback = self._callbacks.pop(0)
            except IndexError:
                return  # Another thread may take them, too.
            try:
                callback()
            except Exception:
                sys.excepthook(*sys.exc_info())


_of_process: "Cancellation | None" = None


def of_process(runner_pid: int) -> Cancellation:
    """The cancellation of the call of this process: SIGTERM cancels it, from the first use on.

    Before that, SIGTERM ends the process at once. It stays so where the first use is not in the
    main thread, and in processes that the tool forks.
    """
    global _of_process
    if _of_process is None:
        _of_process = Cancellation()
        if os.getpid() == runner_pid:
            _cancel_at_sigterm(_of_process)
    return _of_process


def _cancel_at_sigterm(cancellation: Cancellation) -> None:
    tools_own = _signal.getsignal(_signal.SIGTERM)
    # Held while callbacks run, and from the end of the process on.
    running = _thread.allocate_lock()

    def call_back() -> None:
        try:
            cancellation.cancel()
        finally:
            running.release()

    def on_sigterm(number: int, frame: object) -> None:
        cancellation.cancelled = True
        if running.acquire(blocking=False):
            try:
                # The tool may hold any lock where it is now.
                _thread.start_new_thread(call_back, ())
            except RuntimeError:
                call_back()  # The tool has as many threads as it may have.
        if callable(tools_own):
            tools_own(number, frame)

    try:
        _signal.signal(_signal.SIGTERM, on_sigterm)
    except ValueError:
        return  # Not in the main thread.
    atexit.register(running.acquire)
    _spare_children(on_sigterm, tools_own)


def _spare_children(handler: object, former: object) -> None:
    """Children that the tool forks are ended by SIGTERM as without the handler."""
    masks: "dict[int, object]" = {}

    def hold() -> None:
        # Python forgets in a new child what came before it was ready.
        former_mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGTERM,))
        masks[_thread.get_ident()] = former_mask

    def let_go() -> None:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, masks.pop(_thread.get_ident()))

    def begin_child() -> None:
        if _signal.getsignal(_signal.SIGTERM) is handler:
            # None stands for a handler of a library, which cannot be set again.
            _signal.signal(_signal.SIGTERM, former or _signal.SIG_DFL)
        let_go()

    os.register_at_fork(before=hold, after_in_parent=let_go, after_in_child=begin_child)
