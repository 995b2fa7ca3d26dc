"""Tests of batches and the policy."""
