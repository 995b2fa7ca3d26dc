"""Batches: what is requested, the groups they deliver, and the binary form of a page of groups."""
