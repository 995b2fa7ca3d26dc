"""Evaluations: a fixed set of tasks, each sampled n times, and nothing filtered."""
