-- Questions to the tables of a fleet, for DuckDB 1.2 or later:
--
--   duckdb -cmd "SET VARIABLE fleet = '/srv/fleet'" -f docs/fleet/duckdb.sql
--
-- Each query stands under a line `-- query: NAME`. docs/fleet/tables.md explains the columns.
-- `ctrace fleet report --format json` says the same numbers.

-- The tables. A folder's names are columns: host, day and unit. Older files of paths have
-- fewer columns.
CREATE OR REPLACE TEMP VIEW functions AS
SELECT * FROM read_parquet(getvariable('fleet') || '/functions/*/*/*/*.parquet',
    hive_partitioning = true, hive_types = {'host': VARCHAR, 'day': DATE, 'unit': VARCHAR});
CREATE OR REPLACE TEMP VIEW paths AS
SELECT * FROM read_parquet(getvariable('fleet') || '/paths/*/*/*/*.parquet',
    union_by_name = true, hive_partitioning = true,
    hive_types = {'host': VARCHAR, 'day': DATE, 'unit': VARCHAR});
CREATE OR REPLACE TEMP VIEW targets AS
SELECT * FROM read_parquet(getvariable('fleet') || '/targets/*/*/*/*.parquet',
    hive_partitioning = true, hive_types = {'host': VARCHAR, 'day': DATE, 'unit': VARCHAR});

-- The middle of a bucket in nanoseconds: sixteen buckets an octave.
CREATE OR REPLACE TEMP MACRO octave(bucket) AS greatest(bucket // 16 - 1, 0);
CREATE OR REPLACE TEMP MACRO middle(bucket) AS
    ((bucket - 16 * octave(bucket)) * pow(2, octave(bucket)) + floor(pow(2, octave(bucket)) / 2))::HUGEINT;

-- Calls by bucket, and those up to it. Percentiles are the first bucket that reaches their rank.
CREATE OR REPLACE TEMP VIEW calls_by_bucket AS
WITH single AS (
    SELECT host, unit, version, object, function, unnest(buckets) AS bucket, unnest(counts) AS calls
    FROM functions)
SELECT host, unit, version, object, function, bucket, sum(calls) AS calls FROM single GROUP BY ALL;

-- query: slowest functions
WITH sums AS (
    SELECT object, function, sum(calls)::BIGINT AS calls, sum(total_ns)::BIGINT AS total_ns,
        sum(self_ns)::BIGINT AS self_ns, min(min_ns) AS min_ns, max(max_ns) AS max_ns,
        count(DISTINCT host) AS hosts
    FROM functions GROUP BY ALL),
buckets AS (
    SELECT object, function, bucket, sum(calls) AS calls FROM calls_by_bucket GROUP BY ALL),
ranks AS (
    SELECT object, function, bucket, sum(calls) OVER (PARTITION BY object, function) AS timed,
        sum(calls) OVER (PARTITION BY object, function ORDER BY bucket) AS up_to
    FROM buckets),
percentiles AS (
    SELECT object, function,
        middle(min(bucket) FILTER (up_to * 1000 >= timed * 500)) AS p50,
        middle(min(bucket) FILTER (up_to * 1000 >= timed * 990)) AS p99
    FROM ranks GROUP BY ALL)
SELECT function, object, hosts, calls, total_ns, self_ns,
    least(greatest(p50, min_ns), max_ns)::BIGINT AS p50_ns,
    least(greatest(p99, min_ns), max_ns)::BIGINT AS p99_ns
FROM sums LEFT JOIN percentiles USING (object, function)
ORDER BY total_ns DESC LIMIT 50;

-- query: p99 by host
WITH sums AS (
    SELECT host, object, function, min(min_ns) AS min_ns, max(max_ns) AS max_ns
    FROM functions GROUP BY ALL),
buckets AS (
    SELECT host, object, function, bucket, sum(calls) AS calls FROM calls_by_bucket GROUP BY ALL),
ranks AS (
    SELECT host, object, function, bucket,
        sum(calls) OVER (PARTITION BY host, object, function) AS timed,
        sum(calls) OVER (PARTITION BY host, object, function ORDER BY bucket) AS up_to
    FROM buckets),
percentiles AS (
    SELECT host, object, function, max(timed)::BIGINT AS timed,
        middle(min(bucket) FILTER (up_to * 1000 >= timed * 990)) AS p99
    FROM ranks GROUP BY ALL)
SELECT function, object, host, timed, least(greatest(p99, min_ns), max_ns)::BIGINT AS p99_ns
FROM percentiles JOIN sums USING (host, object, function)
ORDER BY p99_ns DESC LIMIT 50;

-- query: build against build
-- `SET VARIABLE old = '3f1c'` and `new` choose two; otherwise these are the builds that were seen first
-- and last. Each host has one vote: `errors` says how many standard errors the change is away from 0.
-- `ctrace fleet diff` judges it with an interval, corrected for the number of functions.
WITH builds AS (
    SELECT coalesce(getvariable('old')::VARCHAR, min_by(version, (start_ns, version))) AS old,
        coalesce(getvariable('new')::VARCHAR, max_by(version, (start_ns, version))) AS new
    FROM functions),
hosts AS (
    SELECT function, object, host, starts_with(version, new) AS is_new,
        sum(timed_ns) / sum(timed) AS mean_ns, sum(timed)::BIGINT AS timed
    FROM functions, builds
    WHERE timed > 0 AND (starts_with(version, old) OR starts_with(version, new)) GROUP BY ALL),
sides AS (
    SELECT function, object, is_new, sum(timed)::BIGINT AS timed, count(*) AS hosts,
        sum(mean_ns * timed) / sum(timed) AS mean_ns, avg(ln(mean_ns)) AS log_ns,
        var_samp(ln(mean_ns)) / count(*) AS error
    FROM hosts WHERE mean_ns > 0 GROUP BY ALL)
SELECT o.function, o.object, o.hosts AS old_hosts, n.hosts AS new_hosts, o.timed AS old_calls,
    n.timed AS new_calls, o.mean_ns AS old_mean_ns, n.mean_ns AS new_mean_ns,
    100 * (n.mean_ns / o.mean_ns - 1) AS change_percent,
    (n.log_ns - o.log_ns) / nullif(sqrt(o.error + n.error), 0) AS errors
FROM sides o JOIN sides n ON o.function = n.function AND o.object = n.object
WHERE n.is_new AND NOT o.is_new ORDER BY abs(errors) DESC NULLS LAST LIMIT 50;

-- query: a host that differs
-- How far a host is from the middle of all hosts, in the spread of the hosts between.
WITH hosts AS (
    SELECT function, object, host, sum(timed_ns) / sum(timed) AS mean_ns
    FROM functions WHERE timed > 0 GROUP BY ALL),
middle_of_all AS (
    SELECT function, object, median(mean_ns) AS mean_ns, mad(mean_ns) AS spread_ns
    FROM hosts GROUP BY ALL)
SELECT host, function, object, h.mean_ns, m.mean_ns AS of_all_ns,
    (h.mean_ns - m.mean_ns) / nullif(1.4826 * m.spread_ns, 0) AS deviations
FROM hosts h JOIN middle_of_all m USING (function, object)
ORDER BY abs(deviations) DESC NULLS LAST LIMIT 50;

-- query: flame graph
-- Folded stacks, for flamegraph.pl, inferno or speedscope. `ctrace fleet flamegraph` draws them.
-- Names have no control characters, so one can part them for a moment.
SELECT replace(replace(array_to_string(path, chr(1)), ';', ':'), chr(1), ';')
    || ' ' || sum(self_ns)::BIGINT AS line
FROM paths GROUP BY path HAVING sum(self_ns) > 0 ORDER BY line;

-- query: cost of tracing
SELECT unit, count(DISTINCT host) AS hosts, sum(calls)::BIGINT AS calls,
    100.0 * sum(cost_ns) FILTER (cpu_ns IS NOT NULL) / nullif(sum(cpu_ns), 0) AS percent_of_cpu,
    sum(lost_events)::BIGINT AS lost_events
FROM targets GROUP BY unit ORDER BY percent_of_cpu DESC NULLS LAST;

-- query: slowest calls
-- Single calls, with the callee that took most of each. `ctrace fleet slow` shows all that was inside.
-- The table is there once a call took `slow_from`.
SELECT function, object, host, unit, tid, call_start_ns, duration_ns, self_ns,
    array_to_string(path, ' > ') AS path, inside[1] AS most_in, inside_ns[1] AS most_in_ns
FROM read_parquet(getvariable('fleet') || '/slow_calls/*/*/*/*.parquet',
    hive_partitioning = true, hive_types = {'host': VARCHAR, 'day': DATE, 'unit': VARCHAR})
ORDER BY duration_ns DESC, call_start_ns, host, tid LIMIT 50;
