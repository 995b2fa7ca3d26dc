# Downloads source distributions from the package index that pip uses: reads a JSON list of [name, version] from standard input, and writes
# NAME-VERSION.tar.gz into the folder of its argument. What is already there is not downloaded again.

import html
import json
import os
import re
import sys
import urllib.parse
import urllib.request

INDEX = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")


def read(url):
    with urllib.request.urlopen(url, timeout=120) as reply:
        return reply.read()


def find(name, version):
    page = f"{INDEX}/{name}/"
    for address, file in re.findall(r'href="([^"]+)"[^>]*>\s*([^<]+?)\s*<', read(page).decode()):
        if re.fullmatch(rf"{re.escape(name)}-{re.escape(version)}\.tar\.gz", file.replace("_", "-"), re.I):
            return urllib.parse.urljoin(page, html.unescape(address)).split("#")[0]
    raise SystemExit(f"{page} has no source distribution of {name} {version}")


def main():
    folder = sys.argv[1]
    for name, version in json.load(sys.stdin):
        path = os.path.join(folder, f"{name}-{version}.tar.gz")
        if not os.path.exists(path):
            content = read(find(name, version))
            with open(f"{path}.part", "wb") as file:
                file.write(content)
            os.rename(f"{path}.part", path)


main()
