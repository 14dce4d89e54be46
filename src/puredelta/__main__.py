"""``python -m puredelta``: the command line."""

from __future__ import annotations

import sys

from puredelta.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
