#!/usr/bin/env bash
# Prepares a fresh clone: installs the npm packages (Node.js 24 is one of them) and the few system packages. Does nothing when everything
# is installed. A missing system package is never fatal: the script prints the command that installs it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'setup: %s\n' "$*" >&2; }

install_npm_packages() {
  local stamp=node_modules/.millrace-setup hash
  hash=$(sha256sum package-lock.json)
  [[ -f $stamp && $(<"$stamp") == "$hash" ]] && return
  # An install by hand counts if it is newer than the lock file.
  if [[ -f $stamp || ! node_modules/.package-lock.json -nt package-lock.json ]]; then
    say 'installing npm packages (npm ci)'
    npm ci --no-audit --no-fund --loglevel=error >&2
  fi
  printf '%s' "$hash" >"$stamp"
}

missing_system_packages() {
  command -v bash >/dev/null || echo bash
  command -v bwrap >/dev/null || echo bubblewrap
  command -v cc >/dev/null || echo gcc # the executor is compiled in this clone
  compgen -G '/usr/lib*/*/libc.a' >/dev/null || echo libc6-dev
  # Sandboxes see the system's Python, even if PATH finds another one first.
  if is_for test check bench; then has_python_module IPython || echo ipython3; fi
  if is_for test check release; then # the wheel of the Python client
    has_python_module pip || echo python3-pip
    has_python_module setuptools || echo python3-setuptools
    has_python_module wheel || echo python3-wheel
    compgen -G '/usr/lib/python3.*/ensurepip/__main__.py' >/dev/null || echo python3-venv
  fi
  if is_for test check build release; then # packages carry the executor for both architectures
    case $(uname -m) in
      x86_64) command -v aarch64-linux-gnu-gcc >/dev/null || printf '%s\n' gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;;
      aarch64) command -v x86_64-linux-gnu-gcc >/dev/null || printf '%s\n' gcc-x86-64-linux-gnu libc6-dev-amd64-cross ;;
    esac
  fi
  if is_for test check chaos test:world; then # the chaos run steps the clock, and makes fsync slow
    compgen -G '/usr/lib*/*/faketime/libfaketimeMT.so.1' >/dev/null || echo libfaketime
  fi
  if is_for test check bench chaos test:world; then # a PostgreSQL server for the store's tests; any version that we support
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || echo postgresql
  fi
  if is_for chaos test:world; then # a machine in a network of its own
    PATH=$PATH:/usr/sbin:/sbin command -v ip >/dev/null || echo iproute2
  fi
  if is_for test:world; then
    command -v promtool >/dev/null || echo prometheus
    PATH=$PATH:/usr/sbin command -v pgbouncer >/dev/null || echo pgbouncer # the store behind a pooler
    command -v slurmctld >/dev/null || printf '%s\n' slurm-wlm slurm-client munge # a cluster of several slurmd on this machine
    command -v docker-registry >/dev/null || echo docker-registry # images are pulled from it
  fi
  if is_for test:world screenshots; then # the dashboard in a real browser
    command -v chromium >/dev/null || printf '%s\n' chromium fonts-dejavu-core
  fi
  if is_for bench; then
    command -v tmux >/dev/null || echo tmux
    has_python_module ipykernel || echo python3-ipykernel
    has_python_module jupyter_client || echo python3-jupyter-client
  fi
}

is_for() { # whether one of these npm scripts runs
  [[ " $* " == *" ${npm_lifecycle_event:-none} "* ]]
}

has_python_module() { # by its folder: importing it would take a second
  compgen -G "/usr/lib/python3*/*-packages/$1" >/dev/null || compgen -G "/usr/local/lib/python3*/*-packages/$1" >/dev/null
}

install_system_packages() {
  local packages log
  mapfile -t packages < <(missing_system_packages)
  [[ ${#packages[@]} -eq 0 ]] && return
  if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
    say "missing: ${packages[*]}. Install with: sudo apt-get install -y ${packages[*]}"
    return
  fi
  say "installing ${packages[*]} (apt-get)"
  log=$(mktemp)
  if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"; } >"$log" 2>&1 </dev/null; then
    tail -n 5 "$log" >&2
    say "could not install ${packages[*]}; continuing without"
  fi
  rm -f "$log"
}

# Only tests and benchmarks run Apptainer sandboxes. Only root can install Apptainer.
install_apptainer() {
  is_for test check bench && [[ $EUID -eq 0 ]] || return 0
  if command -v apptainer singularity >/dev/null; then return; fi
  say 'installing Apptainer (scripts/install-apptainer.sh)'
  bash scripts/install-apptainer.sh || true # it prints the reason
}

# For the tests of the llama.cpp adapter. Any user can install it, into a cache folder.
install_llama_server() {
  is_for test check bench || return 0
  command -v llama-server >/dev/null || bash scripts/install-llama-server.sh || true # it prints the reason
}

install_npm_packages
install_system_packages
install_apptainer
install_llama_server
npm run --silent build:executor
npm run --silent build:dashboard || say 'the dashboard could not be built; the service works without it'
[[ -x node_modules/.bin/node ]] || say "npm has no pinned Node.js for $(uname -sm); using $(command -v node || echo none)"
