#!/bin/bash
# Runs in the verifier's own container, which has only the report.
total=0 right=0
while read -r line; do
  total=$((total + 1))
  grep -qxF -- "$line" /app/report.txt && right=$((right + 1))
done < /tests/expected.txt
order=0
[ "$(cat /app/report.txt)" = "$(cat /tests/expected.txt)" ] && order=1
# A third of the reward for each level; an exact file is worth the whole.
case "$right-$order" in
  3-1) reward=1 ;;
  3-0) reward=0.9 ;;
  2-*) reward=0.5 ;;
  1-*) reward=0.2 ;;
  *) reward=0 ;;
esac
echo "{\"reward\": $reward, \"levels\": $right, \"exact\": $order}" > /logs/verifier/reward.json
