"""A program as a device: command:python examples/command_device.py. It reads one vector from each line, and answers
each.

It computes c plus the products one after another in float32, from float16 factors; put your unit in its place.
"""

import json
import sys

import numpy as np

print(json.dumps({"device": {"name": "a loop in float32"}}), flush=True)
for line in sys.stdin:
    vector = json.loads(line)
    a, b = (np.array([int(x, 16) for x in vector[side]], np.uint16).view(np.float16) for side in "ab")
    d = np.array([int(vector["c"], 16)], np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        for x, y in zip(a.astype(np.float32), b.astype(np.float32), strict=True):
            d = d + x * y
    print(json.dumps({"id": vector.get("id"), "d": f"{d.view(np.uint32)[0]:08x}"}), flush=True)
