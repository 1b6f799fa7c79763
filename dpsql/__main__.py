"""`python -m dpsql` is `dpsql`."""

import sys

from dpsql.faces.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
