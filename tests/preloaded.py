"""The command line in a process that has loaded its modules: each command is a fork of it.

Loading takes longer than most commands of the documentation do. `python -P preloaded.py SOCKET` listens; the program
CLIENT (with the socket's path in it) stands for `mmaprobe`: it passes its arguments, folder, environment and streams
on, and ends as the command does.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from threading import Thread

from tests.places import ROOT

CLIENT = """#!{python} -IS
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({path!r})
said = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [b"%08d" % len(said)], [0, 1, 2])
server.sendall(said)
sys.exit(int(server.makefile().read() or 1))
"""


@cache
def client() -> str:
    """The text of the program, of a process that is started now and ends with this one."""
    folder = TemporaryDirectory()
    path = os.path.join(folder.name, "commands")
    process = subprocess.Popen(
        [sys.executable, "-P", __file__, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()  # it listens

    def end() -> None:
        process.kill()
        process.communicate()
        folder.cleanup()

    atexit.register(end)
    return CLIENT.format(python=sys.executable, path=path)


def _load() -> None:
    """What is loaded stays: a command that looked at all of it again, when it collects garbage and at its end, copied
    its pages and took a third of a second longer."""
    gc.disable()
    for found in walk_packages(import_module("mmaprobe").__path__, "mmaprobe."):
        if not found.name.startswith("mmaprobe.runner."):  # whose modules are programs, too
            with suppress(ImportError):  # of an optional library
                import_module(found.name)
    gc.freeze()


def _listen(path: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for what answers a connection
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    print(flush=True)
    while sys.stdin not in select.select([server, sys.stdin], [], [])[0]:  # it closes when the tests are gone
        connection, _ = server.accept()
        if not os.fork():
            server.close()
            _answer(connection)
        connection.close()


def _answer(connection: socket.socket) -> None:
    size, streams, _, _ = socket.recv_fds(connection, 8, 3)
    request = b""
    while len(request) < int(size):
        request += connection.recv(int(size) - len(request))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    command = os.fork()
    if not command:
        connection.close()
        for place, stream in enumerate(streams):
            os.dup2(stream, place)
            os.close(stream)
        _run(*json.loads(request))
    # whoever asked waits for the end of this process: if they are gone before, nobody wants the command to go on
    Thread(target=lambda: connection.recv(1) or os.kill(command, signal.SIGKILL), daemon=True).start()
    _, status = os.waitpid(command, 0)
    code = os.waitstatus_to_exitcode(status)
    with suppress(OSError):
        connection.sendall(b"%d" % (code if code >= 0 else 128 - code))
    os._exit(0)


def _run(arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    from mmaprobe.cli import entry
    from mmaprobe.queries.claims import verify
    from mmaprobe.queries.solvers import engines
    from tests import shared_answers

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["mmaprobe", *arguments]
    if shared_answers.FOLDER in environment:
        vars(engines)["SolverProcess"] = shared_answers.ask
        vars(verify)["LONGER"] = 1.0  # pages leave out how large a share some long sum reaches
    vars(entry)["BEGAN"] = time.monotonic()
    gc.enable()
    entry.main()


if __name__ == "__main__":
    _load()
    _listen(sys.argv[1])
