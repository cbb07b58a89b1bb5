"""`python -m placeto`: the command line."""

import sys

from placeto.cli import main

if __name__ == "__main__":
    sys.exit(main())
