#!/usr/bin/env bash
# On the GPU node, after unpack.sh: the runs of docs/training.md.
#   run.sh TARGET [RUN…]      writes TARGET/runs/NAME/steps.jsonl; without names, all runs in the order of the table below
# Names joined with + run side by side on the GPU, each with its own vLLM and its own service. Take speeds
# only from a run that had the GPU for itself. RUN_OPTIONS is added to the options of every run: RUN_OPTIONS='--cpu --steps 1' tries it out.
set -euo pipefail
[[ $# -ge 1 ]] || { echo 'usage: run.sh TARGET [RUN…]' >&2; exit 2; }
target=$(cd "$1" && pwd)
shift
example=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [[ -d $target/site ]]; then export PYTHONPATH=$target/site; fi
export PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
python=${PYTHON:-python3} millrace=$target/service/node_modules/.bin/millrace

math='--task math --steps 160 --max-groups 64'
plain='--task math --steps 160 --groups 40' through='--max-groups 40 --synchronous'
tools='--task math-tools --warmup 12 --groups 8 --group-size 8 --max-groups 32 --held-out 16 --init-slots 24'
shell='--task shell --steps 120 --warmup 14 --groups 8 --group-size 8 --max-groups 32 --held-out 16 --init-slots 24'
speed='--task math --steps 25 --warmup 12 --evaluate-every 100 --held-out 4'
declare -A runs=(
  [math]="$math" [math-1]="$math --seed 1" [math-2]="$math --seed 2"
  [math-fast]="$math --learning-rate 2e-5 --beta2 0.95"
  [baseline]="$plain" [baseline-1]="$plain --seed 1" [baseline-2]="$plain --seed 2"
  [math-plain]="$plain $through" [math-plain-1]="$plain $through --seed 1" [math-plain-2]="$plain $through --seed 2"
  [shell]="$shell" [shell-1]="$shell --seed 1" [shell-2]="$shell --seed 2" [shell-retokenised]="$shell --retokenise"
  [math-tools]="$tools --steps 60"
  [synchronous]="$speed --synchronous" [asynchronous]="$speed"
  [in-place]="$speed --in-place" [four-servers]="$speed --in-place" [ahead]="$speed --in-place --lookahead 2"
  [baseline-speed]="$speed --groups 57"
)
order=(math+math-1+math-2 baseline+math-plain shell shell-1 shell-2 shell-retokenised math-tools)
order+=(baseline-speed synchronous asynchronous in-place four-servers ahead)

engines=()
trap 'for pid in "${engines[@]}"; do kill "$pid" 2>/dev/null || true; done' EXIT
if [[ ${RUN_OPTIONS:-} == *--cpu* ]]; then cpu=(--cpu); else cpu=(); fi

# engine PORT SERVERS: a vLLM that stays for later runs, since its start takes longer than a short run.
engine() {
  if curl -sf "http://127.0.0.1:$1/health" >/dev/null; then return; fi
  echo "starting vLLM at port $1"
  mkdir -p "$target/runs"
  "$python" "$example/engine.py" --model "$target/model" --port "$1" --api-servers "$2" "${cpu[@]}" >"$target/runs/vllm-$1.log" 2>&1 &
  engines+=($!)
}

# one NAME INDEX COUNT PORT: one run with the vLLM at PORT; COUNT runs share the machine.
one() {
  local name=$1 out=$target/runs/$1 workers=$((8 / $3)) port=$4 program=train
  if [[ $name == baseline* ]]; then program=baseline; fi
  mkdir -p "$out" "/dev/shm/millrace-$name"
  for _ in $(seq 900); do
    if curl -sf "http://127.0.0.1:$port/health" >/dev/null; then break; fi
    sleep 1
  done
  # shellcheck disable=SC2086 # options, word by word
  "$python" "$example/$program.py" --model "$target/model" --engine "http://127.0.0.1:$port" --port $((8107 + 10 * $2)) --out "$out" \
    --millrace "$millrace" --weights "/dev/shm/millrace-$name" --workers $((workers > 2 ? workers : 2)) ${runs[$name]} ${RUN_OPTIONS:-} >"$out/log" 2>&1 || return
  rm -rf "/dev/shm/millrace-$name"
}

[[ $# -gt 0 ]] || set -- "${order[@]}"
for together in "$@"; do
  IFS=+ read -ra names <<<"$together"
  for name in "${names[@]}"; do
    [[ -n ${runs[$name]:-} ]] || { echo "run.sh: no run is called $name; there are: ${!runs[*]}" >&2; exit 2; }
  done
done
failed=0
for together in "$@"; do
  IFS=+ read -ra names <<<"$together"
  pids=()
  for index in "${!names[@]}"; do
    port=$((8100 + 10 * index)) servers=1
    if [[ ${names[$index]} =~ ^(four-servers|ahead)$ ]]; then port=8190 servers=4; fi
    engine "$port" "$servers"
    one "${names[$index]}" "$index" "${#names[@]}" "$port" &
    pids+=($!)
  done
  for index in "${!names[@]}"; do
    if wait "${pids[$index]}"; then
      echo "${names[$index]}: $(tail -n 1 "$target/runs/${names[$index]}/log")"
    else
      echo "${names[$index]} failed; the end of $target/runs/${names[$index]}/log:" >&2
      tail -n 15 "$target/runs/${names[$index]}/log" >&2
      failed=1
    fi
  done
done
exit "$failed"
