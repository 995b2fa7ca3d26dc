"""Tests of the exports to trainers."""
