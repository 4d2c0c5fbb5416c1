"""
A call of nothing, by which what calls need is brought into memory, and made quick, before there is
one.
"""

import os

from .json_codec import encode
from .exit import writes_files
from .protocol import take_call
from .runner import respond

_NAME = __name__


def nothing(text: str) -> dict:
    """A tool."""
    return {"text": text}


def rehearse(directory: str) -> None:
    """
    Runs it with its files in a directory, and leaves there and in this process what was there.
    """
    arguments, result = f"{directory}/rehearsal.json", f"{directory}/rehearsal.result"
    call = {
        "module": _NAME,
        "function": "nothing",
        "args": {"text": ""},
        "result_file": result,
        "output_dir": f"{directory}/output",
    }
    with open(arguments, "wb") as file:
        file.write(encode(call))
    respond(take_call(arguments))
    os.unlink(result)
    writes_files()
