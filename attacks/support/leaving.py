"""
For attacks on what the worker reads: files in the work directory as no tool runner would leave
them.
"""

import os

RESULT = "result.json"
RESULT_OF_NOTHING = b'{"result": {}}'


def leave_result(content):
    """Ends the process as a tool ends that has answered, with this in its answer's place."""
    with open(RESULT, "wb") as file:
        file.write(content)
    os._exit(0)


def leave():
    """Ends the process as a tool ends that has nothing to answer."""
    leave_result(RESULT_OF_NOTHING)
