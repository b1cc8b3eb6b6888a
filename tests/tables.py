"""Reads an exported folder of ranks with other engines and asks each the same question.

Usage: python tests/tables.py target/debug/vramscope [FOLDER_OF_A_RUN]

Without a folder, a run of three ranks is made of the samples. Needs polars, duckdb or pyspark (all from PyPI; pyspark
needs Java); an engine that isn't there is skipped and named.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).parent.parent
RANKS = [
    "samples/val_without_no_grad/snapshot.pickle.gz",
    "samples/healthy/snapshot.pickle.gz",
    "tests/fixtures/snapshots/modern_protocol_5.pickle",
]

# One text for all engines.
SURVIVORS = """
SELECT call_site, COUNT(*) AS kept_count, CAST(SUM(size_bytes) AS BIGINT) AS kept_bytes
FROM allocations
WHERE state = 'kept' AND device LIKE 'cuda%'
GROUP BY call_site
ORDER BY kept_bytes DESC, call_site
LIMIT 10
"""


class Missing(Exception):
    """An engine that isn't there."""


def with_vramscope(program, run):
    answer = subprocess.run(
        [program, "query", run, SURVIVORS, "--format", "json"], check=True, capture_output=True, text=True
    )
    return [(row["call_site"], row["kept_count"], row["kept_bytes"]) for row in json.loads(answer.stdout)]


def with_polars(folder):
    import polars

    frame = polars.scan_parquet(folder, hive_partitioning=True)
    ranks = frame.select(polars.col("rank").n_unique()).collect().item()
    rows = polars.SQLContext(allocations=frame).execute(SURVIVORS, eager=True).rows()
    return ranks, rows


def with_duckdb(folder):
    import duckdb

    connection = duckdb.connect()
    connection.execute(
        f"CREATE VIEW allocations AS SELECT * FROM read_parquet('{folder}/*/*.parquet', hive_partitioning = true)"
    )
    ranks = connection.execute("SELECT COUNT(DISTINCT rank) FROM allocations").fetchone()[0]
    return ranks, connection.execute(SURVIVORS).fetchall()


def with_spark(folder):
    from pyspark.sql import SparkSession

    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise Missing("Java is not installed")
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    try:
        frame = spark.read.parquet(folder)
        frame.createOrReplaceTempView("allocations")
        ranks = frame.select("rank").distinct().count()
        return ranks, [tuple(row) for row in spark.sql(SURVIVORS).collect()]
    finally:
        spark.stop()


def make_run(folder):
    for rank, file in enumerate(RANKS):
        suffixes = "".join(pathlib.Path(file).suffixes)
        shutil.copy(REPOSITORY / file, pathlib.Path(folder) / f"snapshot_rank{rank}{suffixes}")
    return folder


def check(program, run):
    expected = with_vramscope(program, run)
    assert expected, "the run keeps something"
    # Held at once or rank by rank, the dataset is the same.
    for one_by_one in ([], ["--one-by-one"]):
        # A folder of its own each: an export doesn't mix with an earlier one.
        with tempfile.TemporaryDirectory() as folder:
            export = [program, "export", run, "--table", "allocations", "--partition", "rank", "-o", folder]
            subprocess.run(export + one_by_one, check=True)
            ranks_expected = len(list(pathlib.Path(folder).glob("rank=*")))
            for engine in (with_polars, with_duckdb, with_spark):
                name = engine.__name__.removeprefix("with_")
                if one_by_one and engine is with_spark:
                    continue  # It starts slowly, and once is enough.
                try:
                    ranks, rows = engine(folder)
                except (ImportError, Missing) as missing:
                    print(f"skipped: {name} ({missing})")
                    continue
                assert rows == expected, f"{name} says {rows}, vramscope {expected}"
                assert ranks == ranks_expected, f"{name} sees {ranks} ranks of {ranks_expected}"
                print(f"{name} agrees: {len(rows)} call sites in {ranks} ranks {' '.join(one_by_one)}".strip())


def main(program, run=None):
    if run is not None:
        return check(program, run)
    with tempfile.TemporaryDirectory() as folder:
        check(program, make_run(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
