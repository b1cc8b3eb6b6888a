#!/usr/bin/env python3
"""Time and peak memory of `vramscope inspect` against what Python needs to load the same file, in one run.

    cargo build --release && python3 benches/compare.py FILE...

Snapshots are loaded with pickle.load, traces with json.load and, where it is installed, orjson.loads; the collector is
off. Python only loads the file; vramscope builds the whole session. The best of several rounds counts on both sides.
"""
import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

LOADERS = {
    "pickle.load": "import pickle; load = lambda path: pickle.load(open(path, 'rb'))",
    "json.load": "import json; load = lambda path: json.load(open(path))",
    "orjson.loads": "import orjson; load = lambda path: orjson.loads(open(path, 'rb').read())",
}
TIMED = "import gc, sys, time; gc.disable(); start = time.perf_counter(); load(sys.argv[1]); print(time.perf_counter() - start)"


def run(command):
    """Wall time in seconds, peak memory in bytes and output of a command; None when it fails."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = status
    return None if status else (seconds, usage.ru_maxrss * 1024, output)


def best(rounds, command, seconds_of):
    results = [run(command) for _ in range(rounds)]
    if None in results:
        return None
    return min(seconds_of(result) for result in results), min(peak for _, peak, _ in results)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("files", nargs="+", type=Path)
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    arguments.add_argument("--program", type=Path, default=target / "release" / "vramscope")
    arguments.add_argument("--rounds", type=int, default=5)
    given = arguments.parse_args()
    for file in given.files:
        size = file.stat().st_size
        ours = best(given.rounds, [given.program, "inspect", file], lambda result: result[0])
        if ours is None:
            sys.exit(f"vramscope inspect fails on {file}")
        print(f"{file.name}: {size / 1e6:.0f} MB, vramscope {ours[0]:.3f} s, peak {ours[1] / size:.2f} times the file")
        with file.open("rb") as opened:
            is_trace = opened.read(64).lstrip()[:1] in (b"{", b"[")
        for name in ("json.load", "orjson.loads") if is_trace else ("pickle.load",):
            command = [sys.executable, "-c", LOADERS[name] + "\n" + TIMED, file]
            theirs = best(given.rounds, command, lambda result: float(result[2]))
            if theirs is not None:
                print(f"  {name} {theirs[0]:.3f} s ({theirs[0] / ours[0]:.1f} times as long), peak {theirs[1] / size:.1f} times")


if __name__ == "__main__":
    main()
