"""Ends a process at once where all that the interpreter would do besides is to take itself apart.

That takes milliseconds, most of the time of a short call whose module was loaded before. What others can see of an
interpreter's end happens here, too: threads are joined, exit handlers run, output is flushed. The rest is objects that
go, and it is left out only where none of them would do anything then: write what it holds back, close, tell somebody.
"""

import _thread
import atexit
import gc
import os
import sys


class QuickEnd:
    """Made when the tool is loaded; what is there by then is looked at once, and not by the garbage collector any more.

    `restore` has to be called before the interpreter ends in the usual way.
    """

    def __init__(self) -> None:
        gc.collect()
        self._streams = _layers((sys.stdin, sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__))
        self._module_count = len(sys.modules)
        self._is_harmless = _are_known(sys.modules.values()) and self._go_quietly()
        gc.freeze()

    def know_what_is_loaded(self) -> None:
        """Counts what was loaded since as the runner's own, which has nothing to do when it goes."""
        self._module_count = len(sys.modules)
        gc.collect()
        gc.freeze()

    def leave(self, status: int, announce: object = None) -> None:
        """Ends the process with a status; returns where the interpreter has to end in the usual way.

        `announce` is called last, when nothing is left but to go, and not where there may be more.
        """
        if not self._is_harmless or _thread._count() > 0:
            return
        try:
            if "threading" in sys.modules:
                sys.modules["threading"]._shutdown()
            atexit._run_exitfuncs()
            if self._ends_well():
                _go(status, announce)
        except BaseException:
            return  # The interpreter's own end meets the same, and says so in its way.

    def rehearse(self) -> None:
        """Does what `leave` does without leaving, so that in the end everything for it is in memory."""
        try:
            if self._is_harmless:
                self._ends_well()
        except BaseException:
            pass  # The call's end meets the same.

    def restore(self) -> None:
        """Has the garbage collector look at everything again: objects that refer to each other go by no other way."""
        gc.unfreeze()

    def _ends_well(self) -> bool:
        """Whether what came after the tool was loaded has nothing to do in the end. Flushes what was printed then."""
        # Not through all modules: to look at an object is to write to it, and where it was forked with that costs a page.
        count = len(sys.modules) - self._module_count
        loaded = [module for _, module in zip(range(count), reversed(sys.modules.values()))]
        if not _are_known(loaded) or not self._young_go_quietly():
            return False
        for stream in (sys.stdout, sys.stderr, *self._streams):
            stream.flush()
        return True

    def _young_go_quietly(self) -> bool:
        """Whether what came after the tool was loaded goes quietly, but for what is only waiting to be collected."""
        if self._go_quietly():
            return True
        gc.collect()
        return self._go_quietly()

    def _go_quietly(self) -> bool:
        """Whether nothing that is looked at has something to do when it goes; the streams of the process aside."""
        objects = gc.get_objects()
        finalizing = {kind for kind in set(map(type, objects)) if _has_finalizer(kind)}
        return not finalizing or all(
            any(each is stream for stream in self._streams) or _is_at_rest(each)
            for each in objects
            if type(each) in finalizing
        )


def _go(status: int, announce: object) -> None:
    """Ends the process, as exit(3) does where anything but the interpreter may have to be told."""
    ctypes = sys.modules.get("_ctypes")
    if ctypes is not None:
        # By it, any library may have been loaded, and any function called: some hold text back, some have exit handlers.
        ctypes.call_function(ctypes.dlsym(ctypes.dlopen(None), "exit"), (status,))
    if announce is not None:
        announce()
    os._exit(status)


def _layers(streams: tuple) -> list:
    """Text streams, where they are some, and what they write to."""
    buffers = [getattr(stream, "buffer", None) for stream in streams]
    raws = [getattr(buffer, "raw", None) for buffer in buffers]
    return [each for each in (*streams, *buffers, *raws) if each is not None]


def _has_finalizer(kind: type) -> bool:
    try:
        return hasattr(kind, "__del__")
    except BaseException:
        return True  # A class may answer with whatever it likes.


def _is_at_rest(each: object) -> bool:
    """Whether it is a generator that has not begun or has ended. From Python 3.11 on they tell."""
    return type(each) is _Generator and not getattr(each, "gi_suspended", True) and not each.gi_running


_Generator = type(_ for _ in ())


def _are_known(modules: object) -> bool:
    """Whether they are Python code and the standard library: other libraries may have an end of their own."""
    return all(map(_is_known, modules))


def _is_known(module: object) -> bool:
    try:
        # Some are objects that only stand where a module would.
        place = vars(module).get("__file__") if isinstance(module, _Module) else None
    except BaseException:
        return False
    if place is None or (isinstance(place, str) and place.endswith(".py")):
        return True
    return isinstance(place, str) and "/lib-dynload/" in place


_Module = type(sys)
