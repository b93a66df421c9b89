"""How much faster `separate` is with two and four workers than with one; solvers do most of the work on its family.

`python -m benchmarks.cluster [-o benchmarks/cluster.md]` starts a scheduler and the workers on this machine, which must
have nothing else to do. Every run has a store of its own, empty at the start, and must find the same classes.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from mmaprobe.hypotheses.family import family_named
from mmaprobe.queries.candidates.separate import Separation, separate
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.solvers.cluster import Cluster
from mmaprobe.queries.solvers.pool import Pool
from mmaprobe.queries.solvers.store import Store
from mmaprobe.queries.solvers.worker import version_of

FAMILY = Path(__file__).with_suffix(".yaml")
EACH = 120.0  # seconds for a pair: the whole question gets a quarter of them, several times what it needs
#: as docs/cluster.md has them: without these, dask looks at its own processes fifty to a hundred times a second
SETTINGS = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "60s",
}
RUNS = {"this machine, one core": 1, "one worker": 1, "two workers": 2, "four workers": 4, "this machine, two cores": 2}
WANTED = 0.55  # of one worker's time, at most
QUIET = 1.0  # load average of the last minute, at most


@contextmanager
def cluster(workers: int, folder: Path) -> Iterator[Pool]:
    """A scheduler and so many workers with one thread each, started as `docs/cluster.md` has it."""
    from distributed import Client  # whoever reads the settings needs none

    file = folder / "scheduler.json"
    common = ["--no-dashboard", "--scheduler-file", str(file)]
    command = [sys.executable, "-P", "-m", "dask"]
    several = ["--nworkers", str(workers), "--nthreads", "1"]
    started = [
        subprocess.Popen(
            [*command, *words, *common],
            env={**os.environ, **SETTINGS},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for words in (["scheduler", "--host", "127.0.0.1", "--port", "0"], ["worker", *several])
    ]
    try:
        address = address_in(file)
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=60)
        with Cluster(address, print) as pool:
            yield pool
    finally:
        for process in started:
            process.terminate()
            process.wait()


def address_in(file: Path) -> str:
    """The address that a scheduler wrote into its file."""
    for _ in range(300):
        if file.exists() and (text := file.read_text(encoding="utf-8")).endswith("}"):
            return str(json.loads(text)["address"])
        time.sleep(0.1)
    raise SystemExit("the scheduler does not start")


def measured(pool: Pool, folder: Path) -> tuple[Separation, float]:
    """What was found, and the seconds that solvers took for it, all together."""
    file = folder / "store.sqlite"
    with Store(file) as store:
        candidates = family_named(str(FAMILY)).candidates()
        found = separate(candidates, Options("bitwuzla", None, store=store, pool=pool), each=EACH)
    with closing(sqlite3.connect(file)) as connection:
        [[seconds]] = connection.execute("SELECT total(seconds) FROM answers")
    return found, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loaded", action="store_true", help="measure although the machine has other things to do")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    if load > QUIET and not arguments.loaded:
        raise SystemExit(f"the load average is {load:.1f}: wait until it is below {QUIET}, or give --loaded")
    found: dict[str, Separation] = {}
    solving: dict[str, float] = {}
    for name, width in RUNS.items():
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            if "worker" in name:
                with cluster(width, folder) as pool:
                    found[name], solving[name] = measured(pool, folder)
            else:
                found[name], solving[name] = measured(Pool(width), folder)
        print(f"{name}: {found[name].seconds:.1f} s, solvers {solving[name]:.1f} s", file=sys.stderr, flush=True)
    one, two = found["one worker"], found["two workers"]
    if open_pairs := {name: len(f.unknown) for name, f in found.items() if f.unknown}:
        raise SystemExit(f"pairs that stayed open, since time ran out: {open_pairs}")
    if any(replace(other, seconds=one.seconds) != one for other in found.values()):
        raise SystemExit("the runs found different classes")
    ratio = two.seconds / one.seconds
    text = report(found, solving, ratio, load)
    if arguments.output:
        arguments.output.write_text(text, encoding="utf-8")
    print(text)
    sys.exit(0 if ratio <= WANTED else 1)


def report(found: dict[str, Separation], solving: dict[str, float], ratio: float, load: float) -> str:
    one = found["one worker"]
    lines = ["| where | seconds | of solvers, added up |", "|---|---|---|"]
    lines += [f"| {name} | {f.seconds:.1f} | {solving[name]:.1f} |" for name, f in found.items()]
    return (
        f"# `separate` with one worker, two and four\n\n"
        f"{FAMILY.name}: {one.candidates} candidates, {len(one.classes)} classes, {len(one.unknown)} pairs open; "
        f"bitwuzla {version_of('bitwuzla')}, {os.cpu_count()} cores, load average at the start {load:.2f}. Workers, "
        f"scheduler and the process that asks share the machine.\n\n" + "\n".join(lines) + "\n\n"
        f"Two workers take {ratio:.2f} of one worker's time (at most {WANTED} is wanted), four "
        f"{found['four workers'].seconds / found['two workers'].seconds:.2f} of two workers'.\n"
    )


if __name__ == "__main__":
    main()
