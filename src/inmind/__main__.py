"""`python -m inmind` is the command."""

from inmind.apps.cli import main

if __name__ == "__main__":
    main()
