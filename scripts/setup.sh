#!/usr/bin/env bash
# Makes a fresh clone ready to run: npm packages (with them Node.js 24) and the few system packages. Does nothing where
# everything is there, and never fails for a system package: what is missing is named with the line that gets it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'setup: %s\n' "$*" >&2; }

install_npm_packages() {
  local stamp=node_modules/.millrace-setup hash
  hash=$(sha256sum package-lock.json)
  [[ -f $stamp && $(<"$stamp") == "$hash" ]] && return
  # An install by hand counts, when it is newer than the lock file.
  if [[ -f $stamp || ! node_modules/.package-lock.json -nt package-lock.json ]]; then
    say 'installing npm packages (npm ci)'
    npm ci --no-audit --no-fund --loglevel=error >&2
  fi
  printf '%s' "$hash" >"$stamp"
}

missing_system_packages() {
  command -v bash >/dev/null || echo bash
  command -v bwrap >/dev/null || echo bubblewrap
  # Sandboxes see the machine's own Python, not one that PATH may have before it.
  if [[ ${npm_lifecycle_event:-} =~ ^(test|check|bench)$ ]]; then has_python_module IPython || echo ipython3; fi
  if [[ ${npm_lifecycle_event:-} == bench ]]; then
    command -v tmux >/dev/null || echo tmux
    has_python_module ipykernel || echo python3-ipykernel
    has_python_module jupyter_client || echo python3-jupyter-client
  fi
}

has_python_module() { # by its folder: importing it would take a second
  compgen -G "/usr/lib/python3*/*-packages/$1" >/dev/null || compgen -G "/usr/local/lib/python3*/*-packages/$1" >/dev/null
}

install_system_packages() {
  local packages log
  mapfile -t packages < <(missing_system_packages)
  [[ ${#packages[@]} -eq 0 ]] && return
  if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
    say "missing: ${packages[*]}. Get them with: sudo apt-get install -y ${packages[*]}"
    return
  fi
  say "installing ${packages[*]} (apt-get)"
  log=$(mktemp)
  if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"; } >"$log" 2>&1 </dev/null; then
    tail -n 5 "$log" >&2
    say "could not install ${packages[*]}; going on without"
  fi
  rm -f "$log"
}

# Only tests and benchmarks run Apptainer sandboxes; as an ordinary user this stays with what is there.
install_apptainer() {
  [[ ${npm_lifecycle_event:-} =~ ^(test|check|bench)$ && $EUID -eq 0 ]] || return 0
  if command -v apptainer singularity >/dev/null; then return; fi
  say 'installing Apptainer (scripts/install-apptainer.sh)'
  bash scripts/install-apptainer.sh || true # it has said why
}

# For the tests of the llama.cpp adapter; any user gets it, into a cache folder.
install_llama_server() {
  [[ ${npm_lifecycle_event:-} =~ ^(test|check|bench)$ ]] || return 0
  command -v llama-server >/dev/null || bash scripts/install-llama-server.sh || true # it has said why
}

install_npm_packages
install_system_packages
install_apptainer
install_llama_server
npm run --silent build:executor
[[ -x node_modules/.bin/node ]] || say "there is no pinned Node.js for $(uname -sm); using $(command -v node || echo none)"
