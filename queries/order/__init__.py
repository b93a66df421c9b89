"""The order in which a device adds, revealed from its answers."""
