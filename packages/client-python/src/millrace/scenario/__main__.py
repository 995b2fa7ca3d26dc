"""The entry of a scenario's process. A worker starts it by its path, so that nothing needs to be installed: arguments are the
scenario's file and the file descriptor of the connection."""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parents[2])  # instead of this folder

from millrace.scenario.sidecar import main  # noqa: E402

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
