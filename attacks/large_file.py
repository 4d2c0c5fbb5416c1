"""Makes a larger file than there may be."""

import os
import signal

from support.taking import take


def attack(target):
    bound = target["limits"]["file_size_bytes"]
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    descriptor = os.open("attack", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        piece = bytes(1 << 20)
        return take(bound, "bytes", lambda: os.write(descriptor, piece))
    finally:
        os.close(descriptor)
        os.unlink("attack")
