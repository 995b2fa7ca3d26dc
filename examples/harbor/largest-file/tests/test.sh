#!/bin/bash
# Runs in a fresh copy of the environment, with the agent's /app.
cases=/tmp/cases
mkdir -p $cases/a/inner $cases/b "$cases/c d"
head -c 5 /dev/zero > $cases/a/five; head -c 7 /dev/zero > $cases/a/seven; head -c 900 /dev/zero > $cases/a/inner/deep
head -c 10 /dev/zero > $cases/b/.hidden; head -c 3 /dev/zero > "$cases/b/with space"
head -c 1 /dev/zero > "$cases/c d/one"
right=0
check() { [ "$(bash /app/largest.sh "$1" 2>/dev/null)" = "$2" ] && right=$((right + 1)); }
check $cases/a seven
check $cases/b .hidden
check "$cases/c d" one
case $right in 3) echo 1 ;; 2) echo 0.5 ;; *) echo 0 ;; esac > /logs/verifier/reward.txt
