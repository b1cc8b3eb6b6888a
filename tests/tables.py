"""Reads an exported folder of ranks with other engines and asks each the same question.

Usage: python tests/tables.py target/debug/vramscope FOLDER_OF_A_RUN

Needs duckdb or pyspark (both from PyPI); an engine that isn't installed is skipped and named.
"""

import json
import subprocess
import sys
import tempfile

# One text for all engines.
SURVIVORS = """
SELECT call_site, COUNT(*) AS kept_count, CAST(SUM(size_bytes) AS BIGINT) AS kept_bytes
FROM allocations
WHERE state = 'kept' AND device LIKE 'cuda%'
GROUP BY call_site
ORDER BY kept_bytes DESC, call_site
LIMIT 10
"""


def with_vramscope(program, run):
    answer = subprocess.run(
        [program, "query", run, SURVIVORS, "--format", "json"], check=True, capture_output=True, text=True
    )
    return [(row["call_site"], row["kept_count"], row["kept_bytes"]) for row in json.loads(answer.stdout)]


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

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        frame = spark.read.parquet(folder)
        frame.createOrReplaceTempView("allocations")
        ranks = frame.select("rank").distinct().count()
        return ranks, [tuple(row) for row in spark.sql(SURVIVORS).collect()]
    finally:
        spark.stop()


def main(program, run):
    expected = with_vramscope(program, run)
    assert expected, "the run keeps something"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [program, "export", run, "--table", "allocations", "--partition", "rank", "-o", folder], check=True
        )
        for engine in (with_duckdb, with_spark):
            name = engine.__name__.removeprefix("with_")
            try:
                ranks, rows = engine(folder)
            except ImportError:
                print(f"skipped: {name} is not installed")
                continue
            assert rows == expected, f"{name} says {rows}, vramscope {expected}"
            print(f"{name} agrees: {len(rows)} call sites in {ranks} ranks")


if __name__ == "__main__":
    main(*sys.argv[1:])
