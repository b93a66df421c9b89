"""A compiler at run time through ctypes: the interface that NVIDIA's (NVRTC) and AMD's (hiprtc) have in common."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from mmaprobe.smtmodel.base.errors import MmaprobeError


class CompilerError(MmaprobeError):
    """A compiler is missing, does not know the architecture, or refused a kernel."""


class RuntimeCompiler:
    """The library of a run-time compiler. `prefix`: how the names of its functions begin."""

    def __init__(self, library: ctypes.CDLL, prefix: str) -> None:
        self._library, self._prefix = library, prefix
        getattr(library, f"{prefix}GetErrorString").restype = ctypes.c_char_p

    def call(self, name: str, *arguments: object) -> None:
        """Call a function. Raises CompilerError with its error."""
        if status := getattr(self._library, f"{self._prefix}{name}")(*arguments):
            message = getattr(self._library, f"{self._prefix}GetErrorString")(status).decode()
            raise CompilerError(f"{self._prefix}{name}: {message}")

    def compiled(
        self, source: str, file: str, options: Sequence[str], parts: Sequence[str], refused: str
    ) -> list[bytes]:
        """The results of the functions `parts` for a source that is compiled under the name `file`. Raises
        CompilerError; `refused`: the text before the compiler's messages."""
        program = ctypes.c_void_p()
        self.call("CreateProgram", ctypes.byref(program), source.encode(), file.encode(), 0, None, None)
        try:
            given = (ctypes.c_char_p * len(options))(*map(str.encode, options))
            if getattr(self._library, f"{self._prefix}CompileProgram")(program, len(options), given):
                log = self._read("GetProgramLog", program).rstrip(b"\0").decode(errors="replace")
                raise CompilerError(f"{refused}:\n{log}")
            return [self._read(part, program) for part in parts]
        finally:
            getattr(self._library, f"{self._prefix}DestroyProgram")(ctypes.byref(program))

    def _read(self, name: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self.call(f"{name}Size", program, ctypes.byref(size))
        content = ctypes.create_string_buffer(size.value)
        self.call(name, program, content)
        return content.raw
