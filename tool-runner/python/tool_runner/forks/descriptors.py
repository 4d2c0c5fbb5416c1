"""Descriptors that are open in this process."""

import os


def open_descriptors() -> "dict[int, str]":
    """What is open, by number, as /proc shows it."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            pass  # The list itself was read by it.
    return found


def close_all_but(kept: "set[int]") -> None:
    """Closes every other descriptor."""
    for descriptor in open_descriptors().keys() - kept:
        os.close(descriptor)
