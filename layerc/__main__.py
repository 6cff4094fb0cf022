"""python -m layerc: the command line."""

import sys

from layerc.cli import main

sys.exit(main())
