"""Downloads two source packages from PyPI and unpacks what the comparisons read: chat templates and parsers. Takes the target folder."""

import html
import io
import re
import sys
import tarfile
import urllib.parse
import urllib.request
from pathlib import Path

SOURCES = {
    "llama-cpp-python": ("0.3.36", ["models/templates/"]),
    "vllm": ("0.32.0", ["examples/", "vllm/tool_parsers/", "vllm/reasoning/", "vllm/parser/", "tests/tool_parsers/"]),
}


def main(target: Path) -> None:
    for name, (version, wanted) in SOURCES.items():
        page = f"https://pypi.org/simple/{name}/"
        with urllib.request.urlopen(page, timeout=60) as reply:
            links = re.findall(r'href="([^"]+)"', reply.read().decode())
        file = f"{name.replace('-', '_')}-{version}.tar.gz"
        link = next((link for link in links if file in link), None)
        if link is None:
            sys.exit(f"{page} has no {file}")
        address = urllib.parse.urljoin(page, html.unescape(link))
        with urllib.request.urlopen(address, timeout=300) as reply:
            unpack(reply.read(), wanted, target / name)


def unpack(content: bytes, wanted: list, target: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            inner = member.name.split("/", 1)[-1]
            if not member.isfile() or ".." in inner or not any(f"/{part}" in f"/{inner}" for part in wanted):
                continue
            place = target / inner
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(archive.extractfile(member).read())


main(Path(sys.argv[1]))
