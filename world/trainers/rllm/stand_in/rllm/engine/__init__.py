"""A stand-in for rLLM, which is not on PyPI, with its documented names."""
