"""Has a program print and leave what others take for its value, as the data of one may."""

import json

from support.channel import own_channel, reach_called

VALUE_MARKS = ("%s", "__RESULT__:%s", "<<<RESULT>>>%s<<<END>>>", "__out = %s")
CODE = """
for line in inputs["lines"]:
    print(line)
with open("result.json", "w") as early:
    early.write(inputs["lines"][0])
__out = "its own"
"""


def attack(target):
    channel = own_channel(target)
    reach_called(channel)
    forged = json.dumps({"result": {"value": target["token"]}})
    inputs = {"lines": [mark % forged for mark in VALUE_MARKS]}
    # An error would say nothing of values, so it is not caught.
    value = channel.run("called.program", language="python", code=CODE, inputs=inputs)["value"]
    return {"reached": value != "its own", "evidence": f"the value is {json.dumps(value)}"}
