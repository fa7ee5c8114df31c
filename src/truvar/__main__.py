"""Run the command line as `python -m truvar`."""

import sys

from truvar.cli import main

if __name__ == "__main__":
    sys.exit(main())
