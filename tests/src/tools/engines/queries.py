"""Prints the rows of the queries in a file, each as JSON, below the names of the queries.

ENGINE FILE TABLES OLD NEW. `-- query: NAME` begins a query, and what is before the first is run for its
effects. `two builds` is the query that compares builds, of those whose ids begin with OLD and NEW.
"""

import json
import sys

COMPARISON = "build against build"


def statements(text):
    lines = (line for line in text.split("\n") if not line.startswith("--"))
    return [part for part in "\n".join(lines).split(";\n") if part.strip()]


def rows(cursor):
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor.fetchall()]


class DuckDb:
    def __init__(self, tables, head):
        import duckdb

        self.session = duckdb.connect()
        self.session.execute(f"SET VARIABLE fleet = '{tables}'")
        self.session.execute(head)

    def query(self, text):
        return rows(self.session.execute(text))

    def compare(self, text, old, new):
        self.session.execute(f"SET VARIABLE old = '{old}'")
        self.session.execute(f"SET VARIABLE new = '{new}'")
        return self.query(text)


class ClickHouse:
    def __init__(self, tables, head):
        from chdb.session import Session

        self.session = Session()
        self.session.query(f"SET param_fleet = '{tables}'")
        self.session.query("SET output_format_json_quote_64bit_integers = 0")
        for statement in statements(head):
            self.session.query(statement)

    def query(self, text):
        return json.loads(str(self.session.query(text, "JSON")))["data"]

    def compare(self, text, old, new):
        self.session.query(f"SET param_old = '{old}'")
        self.session.query(f"SET param_new = '{new}'")
        return self.query(text)


class Spark:
    def __init__(self, tables, head):
        from pyspark.sql import SparkSession

        session = SparkSession.builder.master("local[1]")
        # A few rows: compiled plans and many parts would only cost time.
        for key, value in {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.shuffle.partitions": "1",
        }.items():
            session = session.config(key, value)
        self.session = session.getOrCreate()
        self.session.conf.set("fleet", tables)
        for statement in statements(head):
            self.session.sql(statement)

    def query(self, text):
        *before, last = statements(text)
        for statement in before:
            self.session.sql(statement)
        return [row.asDict() for row in self.session.sql(last).collect()]

    def compare(self, text, old, new):
        view = f"VIEW asked AS SELECT '{old}' AS old, '{new}' AS new"
        self.session.sql(f"CREATE OR REPLACE TEMPORARY {view}")
        return self.query(text)


class Trino:
    """Reads everything by Trino's own grammar, and runs what a translation for DuckDB makes of it."""

    # DuckDB takes two lists apart side by side in a SELECT only.
    UNNEST = "UNNEST(buckets, counts) AS each(bucket, calls)"
    SELECT = "LATERAL (SELECT unnest(buckets) AS bucket, unnest(counts) AS calls) AS each"

    def __init__(self, tables, head):
        import duckdb

        self.session = duckdb.connect()
        for table in ["functions", "paths", "slow_calls", "targets"]:
            types = "{'host': VARCHAR, 'day': DATE, 'unit': VARCHAR}"
            self.session.execute(
                f"CREATE VIEW {table} AS SELECT * FROM read_parquet("
                f"'{tables}/{table}/*/*/*/*.parquet', hive_partitioning = true, hive_types = {types})"
            )
        for statement in statements(head):
            text = self.translated(statement)
            if statement.lstrip().startswith("CREATE OR REPLACE VIEW"):
                assert self.UNNEST in text, text
                self.session.execute(text.replace(self.UNNEST, self.SELECT))

    def translated(self, statement):
        import sqlglot
        from trino_query_parser import parse_statement

        parse_statement(statement.strip())
        return sqlglot.transpile(statement, read="trino", write="duckdb")[0]

    def query(self, text):
        # The tables that a query makes for itself are there.
        *_, last = [self.translated(statement) for statement in statements(text)]
        return rows(self.session.execute(last))

    def compare(self, text, old, new):
        for build in [old, new]:
            assert "CAST(NULL AS varchar)" in text
            text = text.replace("CAST(NULL AS varchar)", f"'{build}'", 1)
        return self.query(text)


ENGINES = {"duckdb": DuckDb, "clickhouse": ClickHouse, "spark": Spark, "trino": Trino}

engine, file, tables, old, new = sys.argv[1:]
head, *queries = open(file).read().split("\n-- query: ")
engine = ENGINES[engine](tables, head)
found = {}
for query in queries:
    name, text = query.split("\n", 1)
    found[name] = engine.query(text)
    if name == COMPARISON:
        found["two builds"] = engine.compare(text, old, new)
print(json.dumps(found, default=str))
