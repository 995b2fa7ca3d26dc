"""Trajectories: the token-exact record of a rollout, in its JSON and binary forms."""
