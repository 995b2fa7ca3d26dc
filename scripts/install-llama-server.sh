#!/usr/bin/env bash
# Gets llama.cpp's llama-server for the tests, as any user: unpacks Debian's unstable package with its libraries into a cache folder and
# installs nothing. apt checks every package against Debian's key. On failure it prints one line and exits with 1.
set -euo pipefail

target=${MILLRACE_LLAMA_SERVER_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/millrace/llama-server}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
say() { printf 'install-llama-server: %s\n' "$*" >&2; }
give_up() {
  say "$*; continuing without llama-server"
  exit 1
}

main() {
  [[ -x $target/llama-server ]] && return
  command -v apt-get dpkg-deb >/dev/null || give_up 'this machine has no apt-get'
  [[ -r $keyring ]] || give_up "there is no $keyring to check Debian's packages with"
  mkdir -p "$(dirname "$target")"
  work=$(mktemp -d "$target.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  local try
  for try in 1 2 3; do
    (cd "$work"; download; cd "$work"; unpack) >"$work/log" 2>&1 </dev/null & # inside of `if`, a failing step would not end it
    if wait $!; then
      # If another process was first, its copy is the same.
      mv -T "$work/flat" "$target" 2>/dev/null || [[ -x $target/llama-server ]] || give_up "$target cannot be written"
      say "$("$target/llama-server" --version 2>&1 | head -n 1) in $target"
      return
    fi
    say "try $try failed: $(tail -n 1 "$work/log")"
  done
  give_up 'it could not be had'
}

download() {
  local mirror packages=llama.cpp-tools
  mirror=$({ cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null || true; } |
    awk '/^URIs:.*debian\/?$/ { print $2 } /^deb .*debian\/? / { for (i = 2; i <= NF; i++) if ($i ~ /^https?:/) print $i }' | sed -n 1p)
  # A separate package list, so that unstable is never added to the system's apt.
  mkdir -p {lists,cache/archives}/partial parts debs
  echo "deb [signed-by=$keyring] ${mirror:-http://deb.debian.org/debian} sid main" >sources.list
  : >status
  local own=(-qq -o "Dir::Etc::sourcelist=$PWD/sources.list" -o "Dir::Etc::sourceparts=$PWD/parts" -o "Dir::State::lists=$PWD/lists"
    -o "Dir::State::status=$PWD/status" -o "Dir::Cache=$PWD/cache" -o Acquire::Check-Valid-Until=false -o Acquire::Languages=none)
  if [[ $EUID -eq 0 ]]; then own+=(-o APT::Sandbox::User=root); fi
  apt-get "${own[@]}" update
  local depth
  for depth in 1 2 3 4; do # libraries, their libraries, and so on; no other programs
    packages=$({
      printf '%s\n' $packages
      apt-cache "${own[@]}" depends --important $packages | sed -n 's/^ *|\?\(Pre\)\?Depends: \(z\?lib[^ <]*\)$/\2/p'
    } | sort -u)
  done
  cd debs
  apt-get "${own[@]}" download $packages
}

# One flat folder: the loader is the running program, and llama.cpp looks for its processor libraries next to it.
unpack() {
  local deb loader
  rm -rf root flat
  mkdir root flat
  for deb in debs/*.deb; do dpkg-deb -x "$deb" root; done
  find root -name '*.so*' -path '*/lib/*' ! -path '*/gconv/*' ! -path '*/engines-3/*' -exec cp -L -t flat {} +
  cp root/usr/bin/llama-server flat/llama-server.bin
  loader=$(cd flat && ls ld-linux-*.so.*)
  printf '#!/bin/sh\nd=${0%%/*}\nexec "$d/%s" --library-path "$d" "$d/llama-server.bin" "$@"\n' "$loader" >flat/llama-server
  chmod 755 flat/llama-server
  (cd debs && sha256sum ./*.deb) >flat/packages.sha256
  flat/llama-server --version
}

main
