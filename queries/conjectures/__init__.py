"""What `prove` decides, each kind of statement a value that decides itself."""
