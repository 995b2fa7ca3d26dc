"""Agent Lightning. `python -m millrace_trainers.agent_lightning` runs the rollouts of its 1.0 gateway, or of its 0.3 store;
`store.MillraceAgent` is an agent for the trainer of 0.3."""
