"""Tests of scenarios in Python."""
