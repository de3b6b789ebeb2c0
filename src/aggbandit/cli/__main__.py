"""`python -m aggbandit.cli` is `aggbandit`."""

import sys

from aggbandit.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
