#!/usr/bin/env python3
"""Makes a snapshot or trace of any size by repeating a recording, each copy later in time.

    python3 benches/make_big.py RECORDING OUT --mb 1000

RECORDING is a snapshot (.pickle) or a trace (.json), compressed with gzip or not. Copies of a snapshot also lie at other
addresses, its segments with them. Plain Python; memory stays at that of one copy.
"""
import argparse
import gzip
import pickle
import re
import struct
from pathlib import Path

ADDRESS_SHIFT = 1 << 48
SHIFT_US = 10_000_000


class Pickler:
    """The opcodes of protocol 4 as Python writes them, piece by piece."""

    def __init__(self):
        self.slots = {}  # id of an object -> its memo slot
        self.count = 0

    def memoize(self, value):
        self.slots[id(value)] = self.count
        self.count += 1
        return b"\x94"

    def get(self, slot):
        return b"h" + bytes([slot]) if slot < 256 else b"j" + struct.pack("<I", slot)

    def integer(self, value):
        if 0 <= value < 256:
            return b"K" + bytes([value])
        if 0 <= value < 65536:
            return b"M" + struct.pack("<H", value)
        if -(2**31) <= value < 2**31:
            return b"J" + struct.pack("<i", value)
        digits = value.to_bytes((value.bit_length() // 8) + 1, "little", signed=True)
        return b"\x8a" + bytes([len(digits)]) + digits

    def save(self, value):
        """The opcodes of a value; what was saved before is fetched from the memo."""
        if value is None:
            return b"N"
        if isinstance(value, bool):
            return b"\x88" if value else b"\x89"
        if isinstance(value, int):
            return self.integer(value)
        if isinstance(value, float):
            return b"G" + struct.pack(">d", value)
        if id(value) in self.slots:
            return self.get(self.slots[id(value)])
        if isinstance(value, str):
            text = value.encode("utf-8", "surrogatepass")
            head = b"\x8c" + bytes([len(text)]) if len(text) < 256 else b"X" + struct.pack("<I", len(text))
            return head + text + self.memoize(value)
        if isinstance(value, tuple) and len(value) == 2:
            return self.save(value[0]) + self.save(value[1]) + b"\x86" + self.memoize(value)
        if isinstance(value, (list, tuple)):
            head = b"]" + self.memoize(value)
            return head + b"".join(
                b"(" + b"".join(map(self.save, value[at : at + 1000])) + b"e" for at in range(0, len(value), 1000)
            )
        if isinstance(value, dict):
            head = b"}" + self.memoize(value)
            items = b"".join(self.save(key) + self.save(item) for key, item in value.items())
            return head + (b"(" + items + b"u" if items else b"")
        raise TypeError(type(value))


def shifted(segment, shift):
    blocks = [{**block, "address": block["address"] + shift} if "address" in block else block for block in segment["blocks"]]
    return {**segment, "address": segment["address"] + shift, "blocks": blocks}


def pieces_of(pickler, event):
    """The opcodes of an event that was saved before, in parts that end where its address and its time go."""
    parts, current = [], b"}\x94("
    for key, value in event.items():
        current += pickler.save(key)
        if key in ("addr", "time_us"):
            parts.append((current, key))
            current = b""
        else:
            current += pickler.save(value)
    return event, parts, current + b"u"


def repeat_snapshot(recording, out, goal_bytes, one_bytes):
    copies = max(1, round(goal_bytes / one_bytes))
    pickler = Pickler()
    out.write(b"\x80\x04}\x94(")
    pickler.count = 1
    for key, value in recording.items():
        if key == "device_traces":
            continue
        out.write(pickler.save(key))
        if key != "segments":
            out.write(pickler.save(value))
            continue
        out.write(b"]\x94")
        pickler.count += 1
        kept = []  # The memo goes by id: objects must stay.
        for copy in range(copies):
            kept.append([shifted(segment, copy * ADDRESS_SHIFT) for segment in value])
            out.write(b"(" + b"".join(map(pickler.save, kept[-1])) + b"e")
    out.write(pickler.save("device_traces") + b"]\x94(")
    pickler.count += 1
    for trace in recording["device_traces"]:
        out.write(b"]\x94")
        pickler.count += 1
        for at in range(0, len(trace), 1000):
            out.write(b"(" + b"".join(map(pickler.save, trace[at : at + 1000])) + b"e")
        pieces = [pieces_of(pickler, event) for event in trace]
        step_us = SHIFT_US + (trace[-1]["time_us"] - trace[0]["time_us"] if trace and "time_us" in trace[0] else 0)
        for copy in range(1, copies):
            for at in range(0, len(pieces), 1000):
                chunk = [b"("]
                for event, parts, end in pieces[at : at + 1000]:
                    for opcodes, key in parts:
                        shift = copy * (ADDRESS_SHIFT if key == "addr" else step_us)
                        chunk.append(opcodes + pickler.integer(event[key] + shift))
                    chunk.append(end)
                chunk.append(b"e")
                out.write(b"".join(chunk))
            pickler.count += len(pieces)
    out.write(b"eu.")


def repeat_trace(text, out, goal_bytes):
    start = text.index("[", text.index('"traceEvents"')) + 1
    end = text.rindex("]")
    events = text[start:end].rstrip().rstrip(",")
    ts = re.compile(r'("ts": ?)(\d+)')
    times = [int(found) for _, found in ts.findall(events)]
    step_us = SHIFT_US + max(times) - min(times)
    out.write(text[:start])
    for copy in range(max(1, round(goal_bytes / len(text)))):
        shift = copy * step_us
        out.write("," if copy else "")
        out.write(ts.sub(lambda found: f"{found[1]}{int(found[2]) + shift}", events))
    out.write(text[end:])


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("recording", type=Path)
    arguments.add_argument("out", type=Path)
    arguments.add_argument("--mb", type=int, default=1000, help="about how large, in megabytes")
    given = arguments.parse_args()
    data = given.recording.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data.lstrip()[:1] in (b"{", b"["):
        with given.out.open("w") as out:
            repeat_trace(data.decode("utf-8", "replace"), out, given.mb * 1_000_000)
    else:
        with given.out.open("wb") as out:
            repeat_snapshot(pickle.loads(data), out, given.mb * 1_000_000, len(data))
    print(f"{given.out}: {given.out.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
