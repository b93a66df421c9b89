"""The documentation: its commands, its tables, its examples, its words."""
