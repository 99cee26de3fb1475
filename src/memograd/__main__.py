"""`python -m memograd` is the same as the command `memograd`."""

from __future__ import annotations

from memograd.cli import main

if __name__ == "__main__":
    main()
