"""NeMo Gym and NeMo RL: Millrace as an agent server. `python -m millrace_trainers.nemo_gym` starts it."""

from ..versions import trainer_imports

with trainer_imports("nemo-gym"):
    import nemo_gym  # noqa: F401
