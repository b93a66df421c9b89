"""The command line: options, streams, exit codes, interrupts."""
