"""A tool that waits, and works, for as long as its arguments say."""

import hashlib
import time


def nothing(seconds: float = 0, rounds: int = 0) -> dict:
    if rounds > 0:
        hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", rounds)
    time.sleep(seconds)
    return {}
