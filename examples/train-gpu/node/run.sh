#!/usr/bin/env bash
# On the GPU node, after unpack.sh: every run of docs/training.md, one after the other, with one vLLM for all of them.
#   run.sh TARGET [RUN…]      writes TARGET/runs/NAME/steps.jsonl; without names, all runs
set -euo pipefail
target=$(cd "$1" && pwd)
shift
example=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PYTHONPATH=$target/site PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
mkdir -p "$target/runs"

declare -A runs=(
  [math]='--task math --steps 160'
  [math-tools]='--task math-tools --steps 100 --warmup 12 --groups 8 --group-size 8 --max-groups 32 --held-out 16 --init-slots 24'
  [math-synchronous]='--task math --steps 25 --synchronous --warmup 12 --evaluate-every 100 --held-out 4'
  [math-asynchronous]='--task math --steps 25 --warmup 12 --evaluate-every 100 --held-out 4'
  [math-1]='--task math --steps 160 --seed 1'
)
names=("$@")
[[ ${#names[@]} -gt 0 ]] || names=(math math-tools math-synchronous math-asynchronous)

if ! curl -sf http://127.0.0.1:8100/health >/dev/null; then
  setsid nohup python3 "$example/engine.py" --model "$target/model" >"$target/runs/engine.log" 2>&1 &
  for _ in $(seq 600); do
    if curl -sf http://127.0.0.1:8100/health >/dev/null; then break; fi
    sleep 1
  done
fi
for name in "${names[@]}"; do
  mkdir -p "$target/runs/$name" /dev/shm/millrace
  # shellcheck disable=SC2086 # options, word by word
  python3 "$example/train.py" --model "$target/model" --engine http://127.0.0.1:8100 --out "$target/runs/$name" \
    --millrace "$target/service/node_modules/.bin/millrace" --weights /dev/shm/millrace ${runs[$name]} 2>&1 | tee "$target/runs/$name/log"
done
