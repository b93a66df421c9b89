"""The types of the JSON documents that commands print, by subject.

A docstring below a field is the field's description in the JSON Schema. A field with the default ABSENT may be missing.
"""
