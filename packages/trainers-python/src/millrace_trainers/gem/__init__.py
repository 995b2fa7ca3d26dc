"""GEM: any scenario of Millrace as a `gem.Env`. The trainer samples; tools, sandbox and reward are those of the scenario."""

from .environment import MillraceEnv, UnscoredRollout
from .policy_server import PolicyServer, TextCodec

__all__ = ["MillraceEnv", "PolicyServer", "TextCodec", "UnscoredRollout"]
