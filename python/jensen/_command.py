"""The command ``jensen``."""

from __future__ import annotations

import signal
import sys

from ._jensen import command


def main() -> int:
    """Runs the command with the process's arguments."""
    # The command handles Ctrl-C: it stops a fit with a checkpoint.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return command(["jensen", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
