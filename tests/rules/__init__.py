"""Rules of the kernel: what each proves is true, and each side condition refuses."""
