"""Huge pages for what a tool has imported: docs/adr/0054-huge-pages-for-heavy-imports.md."""

import ctypes

_MADV_COLLAPSE = 25  # From Linux 6.1 on; madvise(2).
_HUGE_BYTES = 2 * 1024 * 1024
# A gigabyte: each takes some milliseconds of the template's start.
_MOST = 512


def collapse() -> None:
    """Gives the heap of this process huge pages where its pages are dense. A fork copies one entry
    for each in place of 512, and the end of a child drops as few. Where the kernel refuses, nothing
    changes.
    """
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    try:
        windows = _dense_windows()
    except OSError:
        return  # A kernel without CONFIG_PROC_PAGE_MONITOR.
    for address in windows:
        madvise(address, _HUGE_BYTES, _MADV_COLLAPSE)


def _dense_windows() -> "list[int]":
    """Addresses of aligned windows of private memory, of mappings that are used for the most."""
    windows = []
    begin = end = 0
    with open("/proc/self/smaps", "rb") as smaps:
        for line in smaps:
            fields = line.split()
            if fields[0].endswith(b":"):
                if fields[0] == b"Anonymous:" and 2 * 1024 * int(fields[1]) > end - begin:
                    windows += range(begin, end - _HUGE_BYTES + 1, _HUGE_BYTES)
                continue
            begin, end = (int(bound, 16) for bound in fields[0].split(b"-"))
            begin += -begin % _HUGE_BYTES
            if fields[1] != b"rw-p":
                end = begin
    return windows[:_MOST]
