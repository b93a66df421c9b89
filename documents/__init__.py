"""The JSON documents that commands print, as values, by subject.

The comment behind a field, or the docstring below it, is its description in the JSON Schema. A field with the default
ABSENT may be missing.
"""
