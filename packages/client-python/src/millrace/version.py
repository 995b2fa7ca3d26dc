"""The version of this package, read by the build, by `millrace.__version__` and by exports that name their producer."""

from __future__ import annotations

__version__ = "0.2.0"
