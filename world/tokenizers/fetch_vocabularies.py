"""Downloads the sdist of llama-cpp-python from PyPI and unpacks llama.cpp's vocabularies, GGUF files without weights. Takes the target folder."""

import html
import io
import re
import sys
import tarfile
import urllib.parse
import urllib.request
from pathlib import Path

VERSION = "0.3.36"


def main(target: Path) -> None:
    page = "https://pypi.org/simple/llama-cpp-python/"
    with urllib.request.urlopen(page, timeout=60) as reply:
        links = re.findall(r'href="([^"]+)"', reply.read().decode())
    link = next((link for link in links if f"llama_cpp_python-{VERSION}.tar.gz" in link), None)
    if link is None:
        sys.exit(f"{page} has no sdist of {VERSION}")
    with urllib.request.urlopen(urllib.parse.urljoin(page, html.unescape(link)), timeout=600) as reply:
        content = reply.read()
    target.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            name = Path(member.name).name
            if member.isfile() and name.startswith("ggml-vocab-") and name.endswith(".gguf"):
                (target / name).write_bytes(archive.extractfile(member).read())


main(Path(sys.argv[1]))
