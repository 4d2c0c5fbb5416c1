"""
Leaves a result of numbers that are none or endless, halves of characters, and names that objects
inherit.
"""

from support.leaving import leave_result

DOCUMENT = b"""{
  "__proto__": {"polluted": true},
  "constructor": {"prototype": {"polluted": true}},
  "result": {
    "twice": 1, "twice": 2,
    "__proto__": {"polluted": true},
    "constructor": {"prototype": {"polluted": true}},
    "toJSON": "x", "then": "x", "length": -1,
    "none": NaN, "endless": [Infinity, -Infinity, 1e999, -1e999],
    "digits": 0.%s1,
    "half": "\\ud800", "other half": "\\udfff \\u0000"
  }
}"""


def attack(target):
    leave_result(DOCUMENT % (b"0" * 100_000))
