"""A fake service, and rollouts made from the golden files."""
