"""verifiers and prime-rl: Millrace as an environment. The plug-in that their configuration names is the module `millrace_verifiers`;
`python -m millrace_trainers.verifiers` serves it on the env server's ZMQ wire."""

from ..versions import trainer_imports

with trainer_imports("verifiers"):
    import verifiers.v1  # noqa: F401
