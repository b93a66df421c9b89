"""Clusters that cannot be used: other versions, missing packages, wrong addresses, no workers."""

from __future__ import annotations

import pickle
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.solvers import cluster as module
from mmaprobe.queries.solvers.cluster import Cluster, ClusterError
from tests.solvers.test_cluster import SAT, Watched, cluster, processes, two

pytestmark = pytest.mark.cluster

__all__ = ["cluster", "two"]  # fixtures


def test_workers_of_another_version_are_refused(cluster: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_program", lambda: "another")
    with pytest.raises(ClusterError, match="another version"):
        cluster.race(["bitwuzla"], SAT, 60, 0, lambda answer: answer)


def test_workers_without_mmaprobe_are_refused_and_live_on(cluster: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    class Nowhere:
        def __reduce__(self) -> Any:
            return __import__, ("mmaprobe_that_is_not_here",)

    monkeypatch.setattr(module, "_call", lambda key, function, arguments: pickle.dumps(Nowhere()))
    with pytest.raises(ClusterError, match="install the same mmaprobe"):
        cluster.run(abs, -3)
    assert len(cluster._client.nthreads()) == 2


@pytest.mark.parametrize("command", [("separate", "nvidia-f16"), ("study", "valero-tf32"), ("prove", "x", "y")])
@pytest.mark.parametrize(
    ("address", "why"),
    [("tcp://127.0.0.1:1", "no dask scheduler at"), ("nonsense", "missing port"), ("foo://x:1", "scheme")],
)
def test_addresses_where_nothing_is(
    command: tuple[str, ...], address: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CONNECT", 0.3)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, [*command, "--cluster", address])
    assert result.exit_code == 2
    assert why in result.stderr
    assert "dask scheduler" in result.stderr


def test_a_port_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        start = time.monotonic()
        with pytest.raises(ClusterError, match="no dask scheduler at"):
            Cluster(f"tcp://127.0.0.1:{server.getsockname()[1]}", print)
        assert time.monotonic() - start < 30


def test_without_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE", 0.5)
    with processes(tmp_path, 0) as started, pytest.raises(ClusterError, match="has no workers: start one with `dask"):
        Cluster(started.address, print)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = CliRunner().invoke(main, ["separate", "nvidia-f16", "--cluster", "tcp://127.0.0.1:8786"])
    assert result.exit_code == 2
    assert "pip install '.[cluster]' in a clone" in result.stderr
