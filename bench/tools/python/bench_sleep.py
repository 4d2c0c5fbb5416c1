"""A tool that does nothing but wait."""

import time


def sleep(seconds: float) -> dict:
    time.sleep(seconds)
    return {"waited": seconds}
