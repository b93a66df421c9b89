"""Escapes for users' text inside other text, as names in programs, file names and messages on a terminal."""

from __future__ import annotations

import re
from urllib.parse import quote

#: control characters, characters that change the direction of text or break a line, and halves of surrogate pairs
_UNSEEN = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_ANY = re.compile(f"[{_UNSEEN}]")
_BUT_LAYOUT = re.compile(rf"(?![\n\t])[{_UNSEEN}]")


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode() if match[0] != "\x7f" else r"\x7f"


def one_line(text: str) -> str:
    """Text for the rest of a line, such as a comment in a script: characters that end a line are written as escapes."""
    return _ANY.sub(_escape, text)


def printable(text: str) -> str:
    """Text for a terminal: control characters other than line breaks and tabs are written as escapes."""
    return _BUT_LAYOUT.sub(_escape, text)


def file_part(text: str) -> str:
    """Text as part of a file name: characters other than letters, digits and a few signs are written as %XX; different
    texts give different names."""
    return quote(text, safe=" @=,+:", errors="backslashreplace")


def c_comment(text: str) -> str:
    """Text for the inside of a C comment, with blanks in every `/*` and `*/`."""
    return one_line(text).replace("*/", "* /").replace("/*", "/ *")


def c_string(text: str) -> str:
    """A string literal of C for the UTF-8 of a text. Question marks are escaped, since they could begin a trigraph."""
    return '"' + "".join(_c_byte(byte) for byte in text.encode("utf-8", "backslashreplace")) + '"'


def _c_byte(byte: int) -> str:
    letter = chr(byte)
    if letter in '"\\?':
        return "\\" + letter
    return letter if letter.isprintable() and byte < 0x7F else f"\\{byte:03o}"


def text_bytes(text: str) -> bytes:
    """Text in UTF-8. Halves of surrogate pairs, as in names of files that are not UTF-8, are written as escapes."""
    return text.encode("utf-8", "backslashreplace")
