"""
For attacks on the template that a call's sandbox may come from: what its module saw when it was
imported.
"""

import os

from support.namespaces import name_of


class Import:
    """
    Made by the import of a module. Later it tells whether the call runs in another sandbox than the
    import did.
    """

    def __init__(self):
        self._mounts = name_of("mnt")
        self.process = start_of("self")
        self.directory = _identity(".")

    def is_elsewhere(self):
        """False where the module was imported for this call, or nobody can tell."""
        return name_of("mnt") != self._mounts


def start_of(process):
    """
    When a process started, in ticks since the boot of the host; proc_pid_stat(5). None where that
    is hidden.
    """
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return None


def is_directory_of(path, identity):
    """Whether a path leads to a directory that was seen before."""
    return identity is not None and _identity(path) == identity


def _identity(path):
    try:
        status = os.stat(path)
        return status.st_dev, status.st_ino
    except OSError:
        return None
