"""NeMo Gym and NeMo RL: Millrace as an agent server. `python -m millrace_trainers.nemo_gym` starts it."""
