"""`python -m mmaprobe`: the command line."""

from mmaprobe.cli.entry import main

if __name__ == "__main__":
    main()
