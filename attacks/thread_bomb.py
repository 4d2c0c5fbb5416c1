"""Starts more threads than there may be processes and threads."""

import threading

from support.taking import take


def attack(target):
    end = threading.Event()
    threading.stack_size(64 * 1024)

    def start():
        try:
            threading.Thread(target=end.wait, daemon=True).start()
        except RuntimeError as error:
            raise OSError(None, str(error)) from None
        return 1

    try:
        return take(target["limits"]["processes"], "threads", start)
    finally:
        end.set()
