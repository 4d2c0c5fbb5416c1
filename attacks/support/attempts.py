"""Tries several ways to one end, for attacks, and reports each."""

import errno
import os
import signal
import traceback


def answer(reached, blocked):
    """An attack's answer; `reached` and `blocked` are lists of evidence."""
    if reached:
        return {"reached": True, "evidence": "; ".join(reached)}
    return {"reached": False, "evidence": "; ".join(blocked)}


def attempt(ways):
    """
    Tries each of `ways`, functions by name. A text is the evidence that a way reached its target;
    None or an OSError is a refusal.
    """
    reached, refused = [], {}
    for name, way in ways.items():
        try:
            evidence = way()
        except OSError as error:
            refused.setdefault(error_name(error), []).append(name)
            continue
        if evidence is None:
            refused.setdefault("nothing", []).append(name)
        else:
            reached.append(f"{name}: {evidence}")
    return answer(reached, [f"{outcome}: {', '.join(names)}" for outcome, names in refused.items()])


def read_each(paths):
    """Reads each of these files."""

    def reading(path):
        def read():
            with open(path, "rb") as file:
                return f"{len(file.read())} bytes"

        return read

    return attempt({path: reading(path) for path in paths})


def error_name(error):
    """EPERM for an OSError of that kind."""
    return errno.errorcode.get(error.errno, str(error))


def in_child(way):
    """Tries one way in a child, so that changes to the process stay there."""

    def go():
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os._exit(_report(way, writing))
        os.close(writing)
        with os.fdopen(reading, "rb") as report:
            text = report.read().decode()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status < 0:
            raise ChildProcessError(f"ended by {signal.Signals(-status).name}")
        if status > 0:
            raise OSError(status, os.strerror(status))
        return text or None

    return go


def _report(way, writing):
    """Writes the evidence to the pipe; returns the error number, 0 for none."""
    try:
        text = way()
        if text is not None:
            os.write(writing, text.encode())
        return 0
    except OSError as error:
        return error.errno or errno.EIO
    except BaseException:
        traceback.print_exc()
        return errno.EIO
