"""A stand-in for slime where its sources are not at hand: the fields and hooks that its documentation names."""
