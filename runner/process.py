"""A program in a session of its own that ends with this process; its input and output never block.

subprocess alone either reads to the end or can block, and asyncio would make every caller asynchronous.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence

from mmaprobe.smtmodel.base.escapes import printable
from mmaprobe.smtmodel.base.interrupts import held_back

CHUNK = 1 << 20  # bytes moved at once, and the longest line
TAIL = 8192  # bytes of standard error kept
POLL = 0.1  # seconds between looks at whether the program still runs
GRACE = 2.0  # seconds that a program has to end after the end of its input
CLOSING = 1.0  # seconds to learn why a program closed its output

# Kills the program's group if the guard's input ends without a line, as it does however this process ends.
_GUARD = 'read -r done || kill -s KILL -- "-$1"'


class EndedError(Exception):
    """A program that ended, or closed its output, before it wrote a line; the message says how."""


class LateError(Exception):
    """A program that wrote no line in time."""


class LineProcess:
    """`lines` holds the whole lines read from the program; `ended` is set once there will be no more lines. The program
    inherits `descriptors`. `aloud`: its standard error is copied to this process's own.

    `pump` does all reading and writing, without threads, so that neither side can wait for the other for ever.
    Raises OSError if the program cannot be started.
    """

    def __init__(self, words: list[str], descriptors: Sequence[int] = (), aloud: bool = False) -> None:
        self._aloud = aloud
        self.lines: deque[bytes] = deque()
        self.ended = False
        self._closed = False
        self._outgoing, self._partial, self._errors = bytearray(), bytearray(), bytearray()
        with held_back:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                pass_fds=descriptors,
                start_new_session=True,  # Ctrl-C on the terminal reaches this process alone; the group can be killed
            )
            try:
                self._guard = subprocess.Popen(
                    ["/bin/sh", "-c", _GUARD, "sh", str(self._process.pid)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except BaseException:
                self._kill_group()
                raise
        self._selector = selectors.DefaultSelector()
        assert self._process.stdin is not None
        self._stdin = self._process.stdin
        for pipe in (self._stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            widen_pipe(pipe.fileno())
        for pipe, reader in ((self._process.stdout, self._read_lines), (self._process.stderr, self._read_errors)):
            assert pipe is not None
            self._selector.register(pipe, selectors.EVENT_READ, reader)

    def send(self, line: bytes) -> None:
        """Queue a line; `pump` writes it. The line is lost if the program has closed its standard input."""
        if self._stdin.closed:
            return
        if not self._outgoing:
            self._selector.register(self._stdin, selectors.EVENT_WRITE, self._write)
        self._outgoing += line

    def pump(self, seconds: float) -> None:
        """Read and write what is ready now; wait at most `seconds` until something is."""
        events = self._selector.select(seconds)
        for key, _ in events:
            handle: Callable[[], None] = key.data
            handle()
        if not events and self._exit() is not None:
            self.ended = True  # another process may still hold its standard output open

    def line(self, until: float) -> bytes:
        """The next line, waited for until a time of time.monotonic. Raises EndedError and LateError."""
        while not self.lines:
            if self.ended:
                self.wait(CLOSING)
                raise EndedError(self.ending())
            left = until - time.monotonic()
            if left <= 0:
                raise LateError
            self.pump(min(left, POLL))
        return self.lines.popleft()

    def _write(self) -> None:
        try:
            sent = os.write(self._stdin.fileno(), bytes(self._outgoing[:CHUNK]))
        except BlockingIOError:
            return
        except OSError:  # the program reads no more; its output is still read
            self._end_input()
            return
        del self._outgoing[:sent]
        if not self._outgoing:
            self._selector.unregister(self._stdin)

    def _end_input(self) -> None:
        if not self._stdin.closed:
            if self._outgoing:
                self._selector.unregister(self._stdin)
                self._outgoing.clear()
            self._stdin.close()

    def _read_lines(self) -> None:
        assert self._process.stdout
        chunk = _read(self._process.stdout.fileno())
        if chunk is None:
            return
        if not chunk:  # a last line without an end is dropped: the program may have died within it
            self._selector.unregister(self._process.stdout)
            self.ended = True
            return
        *whole, rest = chunk.split(b"\n")
        if whole:
            whole[0] = bytes(self._partial) + whole[0]
            self._partial.clear()
            self.lines.extend(whole)
        self._partial += rest
        if len(self._partial) > CHUNK:
            self.lines.append(bytes(self._partial))
            self._partial.clear()

    def _read_errors(self) -> None:
        assert self._process.stderr
        chunk = _read(self._process.stderr.fileno())
        if chunk is None:
            return
        if not chunk:
            self._selector.unregister(self._process.stderr)
        if self._aloud and sys.stderr is not None:
            sys.stderr.write(printable(chunk.decode("utf-8", "replace")))
            sys.stderr.flush()
        self._errors += chunk
        del self._errors[:-TAIL]

    def _exit(self) -> os.waitid_result | None:
        """The program's exit status. The process is not reaped: otherwise another group could get the number of its
        process group."""
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)

    def wait(self, seconds: float) -> None:
        """Read on until the program has ended, for at most `seconds`."""
        deadline = time.monotonic() + seconds
        while self._exit() is None and (left := deadline - time.monotonic()) > 0:
            self.pump(min(left, 0.01))
        self.pump(0)

    def ending(self) -> str:
        """How the program ended, in words."""
        result = self._exit()
        if result is None:
            return "closed its standard output"
        if result.si_code == os.CLD_EXITED:
            return f"ended with exit status {result.si_status}"
        try:
            return f"was ended by signal {signal.Signals(result.si_status).name}"
        except ValueError:
            return f"was ended by signal {result.si_status}"

    def last_words(self, count: int = 5) -> str:
        """The last lines of the program's standard error."""
        lines = self._errors.decode("utf-8", "replace").splitlines()
        return "\n".join(line[:500] for line in [line for line in lines if line.strip()][-count:])

    def close(self) -> None:
        """End the program's input, give it a moment to end by itself, then kill it and its children."""
        if not self._closed:
            self._end_input()
            try:
                self.wait(GRACE)
            finally:
                self.kill()

    def kill(self) -> None:
        """Kill the program and its children, now."""
        if self._closed:
            return
        self._closed = self.ended = True
        self._kill_group()
        self._guard.communicate(b"\n")
        self._end_input()
        self._selector.close()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def widen_pipe(descriptor: int) -> None:
    """Let a pipe hold `CHUNK` bytes; without effect on other files and systems."""
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, CHUNK)


def _read(descriptor: int) -> bytes | None:
    """The bytes that are ready; empty at the end of the file, None if there are none yet."""
    try:
        return os.read(descriptor, CHUNK)
    except BlockingIOError:
        return None
