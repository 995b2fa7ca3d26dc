#!/bin/bash
for level in ERROR INFO WARN; do
  echo "$level $(cut -d ' ' -f 2 /app/service.log | grep -c "^$level$")"
done > /app/report.txt
