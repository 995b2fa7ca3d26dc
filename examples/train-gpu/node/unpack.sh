#!/usr/bin/env bash
# On the GPU node: unpacks the files of bundle.sh. Each call reads only the files with its name.
#   unpack.sh site PARTS TARGET       vLLM, for PYTHONPATH
#   unpack.sh model PARTS TARGET      the model, converted with the packages of `site`
#   unpack.sh service PARTS TARGET    Millrace; as root also bubblewrap and IPython, which sandboxes need in /usr/local
set -euo pipefail
what=$1 parts=$(cd "$2" && pwd)
mkdir -p "$3"
target=$(cd "$3" && pwd)
clone=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
# The python3 of a sandbox is the machine's own, not that of a virtual environment.
sandbox_path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

unzstd() { cat "$@" | LD_LIBRARY_PATH=$parts "$parts/zstd" -q -dc | tar -C "$target" -xf -; }

case $what in
  site) unzstd "$parts"/site.[0-9]* ;;
  model)
    cat "$parts"/model.[0-9]* >"$target/model.gguf"
    HF_HUB_OFFLINE=1 PYTHONPATH=$target/site python3 "$clone/world/engines/gguf-to-hf.py" "$target/model.gguf" "$target/model"
    ;;
  service)
    unzstd "$parts"/service.[0-9]*
    if ! command -v bwrap >/dev/null; then
      install -m 755 "$target/service/bubblewrap/bwrap" /usr/local/bin/bwrap
      if ldd /usr/local/bin/bwrap | grep -q 'not found'; then
        cp "$target"/service/bubblewrap/lib* /usr/local/lib/
        ldconfig
      fi
    fi
    if ! env -i PATH=$sandbox_path python3 -c 'import IPython' 2>/dev/null; then
      folder=$(env -i PATH=$sandbox_path python3 -c 'import site; print(site.getsitepackages()[0])')
      mkdir -p "$folder"
      cp -a "$target"/ipython/. "$folder/"
      env -i PATH=$sandbox_path python3 -m compileall -q "$folder" >/dev/null || true
    fi
    ;;
  *)
    echo "unpack.sh: site, model or service, not $what" >&2
    exit 2
    ;;
esac
