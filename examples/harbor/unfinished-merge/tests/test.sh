#!/usr/bin/env bash
set -u
right=0
grep -qx 'host = db.example' settings.conf && right=$((right + 1))
grep -qx 'port = 5433' settings.conf && ! grep -q 5432 settings.conf && right=$((right + 1))
grep -Eq '^(<<<<<<<|=======|>>>>>>>)' settings.conf || right=$((right + 1))
[ "$right" = "$WANTED" ] && echo 1.0 > /logs/verifier/reward.txt || echo 0.0 > /logs/verifier/reward.txt
