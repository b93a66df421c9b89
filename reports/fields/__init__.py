"""The types of the JSON documents that commands print, by what the commands are about.

A docstring under a field is its description in the schema. A field that is not always there has ABSENT for its default.
"""
