"""The versions of trainers that the adapters are made for. Importing an adapter without its trainer, with an older one, or with one whose
parts are missing says what is needed; a newer one than was tested is a warning."""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Iterator, Mapping, NamedTuple


class Supported(NamedTuple):
    """Versions from `oldest` on, and below `below`. These are the bounds of the extra with this name."""

    package: str
    oldest: str
    below: str


#: By the name of the extra.
SUPPORTED: Mapping[str, Supported] = {
    "agent-lightning": Supported("agentlightning", "0.3.0", "1.1"),
    "gem": Supported("gem-llm", "0.1.0", "0.2"),
    "harbor": Supported("harbor", "0.24.0", "0.26"),
    "nemo-gym": Supported("nemo-gym", "0.4.0", "0.8"),
    "openenv": Supported("openenv", "0.9.0", "0.11"),
    "skyrl": Supported("skyrl", "0.3.0", "0.5"),
    "tinker": Supported("tinker-cookbook", "0.5.8", "0.6"),
    "trl": Supported("trl", "1.16.0", "2"),
    "verifiers": Supported("verifiers", "0.4.0", "0.5"),
    "verl": Supported("verl", "0.9.1", "0.10"),
}


@contextmanager
def trainer_imports(extra: str, *, below: str = "", hint: str = "") -> Iterator[None]:
    """Around the imports of a trainer. `below` narrows the versions for a part of the adapter; `hint` says what to use instead."""
    package, oldest, end = SUPPORTED[extra]
    needed = f"{package} >= {oldest}, < {below or end}"
    remedy = hint or f"pip install 'millrace-trainers[{extra}]'"
    try:
        found = version(package)
    except PackageNotFoundError:
        found = None  # It may be on the path without its metadata, as from its sources.
    if found is not None:
        if to_numbers(found) < to_numbers(oldest) or (below and to_numbers(found) >= to_numbers(below)):
            raise ImportError(f"this adapter needs {needed}, and {package} {found} is installed; {remedy}", name=package)
        if to_numbers(found) >= to_numbers(end):
            warnings.warn(f"{package} {found} is newer than this adapter was tested with ({needed})", stacklevel=4)
    try:
        yield
    except ImportError as error:
        seen = f"{package} {found} cannot be imported: {error}" if found is not None else f"{package} is not installed: {error}"
        raise ImportError(f"this adapter needs {needed}, and {seen}; {remedy}", name=error.name) from error


def to_numbers(text: str) -> tuple[int, ...]:
    """The release of a version, without its last zeros: 1.0 is 1, and a pre-release counts as its release."""
    numbers = [int(one) for one in re.match(r"\d+(\.\d+)*", text.strip())[0].split(".")]  # type: ignore[index]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
