# Judges pairs of an agent's text and an expected answer with math-verify: reads a JSON list, prints a JSON list of booleans.

import json
import sys

from math_verify import parse, verify

print(json.dumps([bool(verify(parse(f"${truth}$"), parse(given))) for given, truth in json.load(sys.stdin)]))
