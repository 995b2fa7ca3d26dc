"""Tests of requests, errors and the golden files."""
