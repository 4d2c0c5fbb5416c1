"""
Leaves files and directories, the work directory itself among them, that nobody may look into, enter
or change.
"""

import os

from support.leaving import RESULT, RESULT_OF_NOTHING


def attack(target):
    os.makedirs("closed/inner")
    for path in (RESULT, "output/report.txt", "closed/inner/file"):
        with open(path, "wb") as file:
            file.write(RESULT_OF_NOTHING)
        os.chmod(path, 0)
    for path in ("closed/inner", "closed", "input", "output", "."):
        os.chmod(path, 0)
    os._exit(0)
