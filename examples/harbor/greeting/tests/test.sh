#!/bin/bash
# Runs in /app, where the agent worked.
right=0
for name in world Ada 'two words'; do
  [ "$(sh greet.sh "$name")" = "hello $name" ] && right=$((right + 1))
done
if [ "$right" -eq 3 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
