#!/usr/bin/env bash
# Installs Apptainer on Debian, as root. If the release has no package, it takes the one from Debian unstable, and puts the C library it
# was built for next to its two programs: the system's library is not touched. On failure it prints one line and exits with 1.
set -euo pipefail

library=/opt/apptainer-libc
say() { printf 'install-apptainer: %s\n' "$*" >&2; }
give_up() {
  say "$*; continuing without Apptainer"
  exit 1
}

main() {
  if command -v apptainer singularity >/dev/null; then return; fi
  [[ $EUID -eq 0 ]] || give_up 'only root can install it'
  command -v apt-get >/dev/null || give_up 'this machine has no apt-get; see https://apptainer.org/docs/admin/main/installation.html'
  work=$(mktemp -d)
  chmod 755 "$work"
  trap 'rm -rf "$work"' EXIT
  if apt-cache policy apptainer 2>/dev/null | grep -q 'Candidate: [0-9]'; then
    quietly apt_install apptainer
  else
    . /etc/os-release
    [[ ${ID:-} == debian ]] || give_up "there is no package for ${PRETTY_NAME:-this system}"
    quietly install_from_unstable
  fi
  quietly settle
  say "installed $(apptainer --version)"
}

# The output of a step is shown only if it fails.
quietly() {
  if ! (set -e; "$@") >"$work/log" 2>&1 </dev/null; then
    tail -n 5 "$work/log" >&2
    give_up "$1 failed"
  fi
}

apt_install() {
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

install_from_unstable() {
  local loader triplet program mirror
  case $(dpkg --print-architecture) in
    amd64) loader=ld-linux-x86-64.so.2 triplet=x86_64-linux-gnu ;;
    arm64) loader=ld-linux-aarch64.so.1 triplet=aarch64-linux-gnu ;;
    *) echo "no build for $(dpkg --print-architecture)"; return 1 ;;
  esac
  mirror=$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null |
    awk '/^URIs:/ { print $2; exit } /^deb / { for (i = 2; i <= NF; i++) if ($i ~ /^https?:/) { print $i; exit } }')
  apt-get -qq update
  apt_install ca-certificates fuse-overlayfs fuse2fs fuse3 libseccomp2 libsqlite3-0 patchelf squashfs-tools squashfuse uidmap
  # A separate package list, so that unstable is never added to the system's apt.
  mkdir -p "$work"/{lists,cache/archives}/partial "$work/parts" "$work/libc" "$work/root"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror:-http://deb.debian.org/debian} sid main" >"$work/sources.list"
  local own=(-qq -o "Dir::Etc::sourcelist=$work/sources.list" -o "Dir::Etc::sourceparts=$work/parts" -o "Dir::State::lists=$work/lists"
    -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root -o Acquire::Check-Valid-Until=false -o Acquire::Languages=none)
  cd "$work"
  apt-get "${own[@]}" update
  apt-get "${own[@]}" download apptainer libc6
  dpkg-deb -x libc6_*.deb libc
  dpkg-deb -x apptainer_*.deb root
  mkdir -p "$library"
  cp -L libc/usr/lib/"$triplet"/{"$loader",libc.so.6,libm.so.6} "$library/"
  for program in usr/bin/apptainer "usr/lib/$triplet/apptainer/bin/starter"; do
    # RPATH, because LD_LIBRARY_PATH does not override it: Apptainer sets that variable for programs it starts, including itself.
    patchelf --set-interpreter "$library/$loader" --force-rpath --set-rpath "$library" "root/$program"
  done
  rm -rf root/usr/share/{man,doc}
  cp -a root/. /
}

settle() {
  # SIF files and overlays of ordinary users are mounted through FUSE.
  if [[ -e /dev/fuse ]]; then chmod 666 /dev/fuse; fi
  if [[ ! -d /run/systemd/system ]]; then apptainer config global --set 'systemd cgroups' no; fi
}

main
