"""`python -m inmind` is the command."""

from inmind.doors.cli import main

if __name__ == "__main__":
    main()
