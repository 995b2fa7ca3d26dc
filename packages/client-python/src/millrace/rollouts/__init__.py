"""Rollouts: what is submitted, what the service reports about them, and reading them as they finish."""
