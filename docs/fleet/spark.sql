-- Questions to the tables of a fleet, for Spark 3.5 or later (run with 3.5 and 4.3):
--
--   spark-sql -d fleet=/srv/fleet -f docs/fleet/spark.sql
--
-- Each query stands under a line `-- query: NAME`. docs/fleet/tables.md explains the columns.

-- Sums are of 64 bits: calls that take more than 292 years in all, as those of a thousand busy threads do in
-- a third of a year, need a choice of days (WHERE day >= …) in the views below.

-- A folder's names are columns: host, day and unit. All are strings, as 012 is no number. Files that are
-- being written have other names.
SET spark.sql.sources.partitionColumnTypeInference.enabled = false;

-- The builds to compare: how their ids begin. '' stands for the one that was seen first, or last.
CREATE OR REPLACE TEMPORARY VIEW asked AS SELECT '' AS old, '' AS new;

CREATE OR REPLACE TEMPORARY VIEW functions
USING parquet OPTIONS (path '${fleet}/functions', pathGlobFilter '*.parquet');
CREATE OR REPLACE TEMPORARY VIEW paths
USING parquet OPTIONS (path '${fleet}/paths', pathGlobFilter '*.parquet');
CREATE OR REPLACE TEMPORARY VIEW targets
USING parquet OPTIONS (path '${fleet}/targets', pathGlobFilter '*.parquet');

-- Calls by bucket, and its middle in nanoseconds: sixteen buckets an octave. Percentiles are the middle
-- of the first bucket that reaches their rank.
CREATE OR REPLACE TEMPORARY VIEW calls_by_bucket AS
WITH single AS (
    SELECT host, unit, version, object, function, each.bucket, each.calls,
        CAST(greatest(each.bucket DIV 16 - 1, 0) AS INT) AS octave
    FROM functions LATERAL VIEW inline(arrays_zip(buckets, counts)) each AS bucket, calls)
SELECT host, unit, version, object, function, bucket, sum(calls) AS calls,
    shiftleft(CAST(bucket - 16 * octave AS BIGINT), octave) + shiftleft(1L, octave) DIV 2 AS middle_ns
FROM single GROUP BY host, unit, version, object, function, bucket, octave;

-- query: slowest functions
WITH sums AS (
    SELECT object, function, sum(calls) AS calls, sum(total_ns) AS total_ns, sum(self_ns) AS self_ns,
        min(min_ns) AS min_ns, max(max_ns) AS max_ns, count(DISTINCT host) AS hosts
    FROM functions GROUP BY object, function),
by_bucket AS (
    SELECT object, function, middle_ns, sum(calls) AS calls
    FROM calls_by_bucket GROUP BY object, function, middle_ns),
ranks AS (
    SELECT object, function, middle_ns, sum(calls) OVER (PARTITION BY object, function) AS timed,
        sum(calls) OVER (PARTITION BY object, function ORDER BY middle_ns) AS up_to
    FROM by_bucket),
percentiles AS (
    SELECT object, function,
        min(middle_ns) FILTER (WHERE up_to * 1000 >= timed * 500) AS p50,
        min(middle_ns) FILTER (WHERE up_to * 1000 >= timed * 990) AS p99
    FROM ranks GROUP BY object, function)
SELECT function, object, hosts, calls, total_ns, self_ns,
    least(greatest(p50, min_ns), max_ns) AS p50_ns,
    least(greatest(p99, min_ns), max_ns) AS p99_ns
FROM sums LEFT JOIN percentiles USING (object, function)
ORDER BY total_ns DESC LIMIT 50;

-- query: p99 by host
WITH sums AS (
    SELECT host, object, function, min(min_ns) AS min_ns, max(max_ns) AS max_ns
    FROM functions GROUP BY host, object, function),
by_bucket AS (
    SELECT host, object, function, middle_ns, sum(calls) AS calls
    FROM calls_by_bucket GROUP BY host, object, function, middle_ns),
ranks AS (
    SELECT host, object, function, middle_ns,
        sum(calls) OVER (PARTITION BY host, object, function) AS timed,
        sum(calls) OVER (PARTITION BY host, object, function ORDER BY middle_ns) AS up_to
    FROM by_bucket),
percentiles AS (
    SELECT host, object, function, max(timed) AS timed,
        min(middle_ns) FILTER (WHERE up_to * 1000 >= timed * 990) AS p99
    FROM ranks GROUP BY host, object, function)
SELECT function, object, host, timed, least(greatest(p99, min_ns), max_ns) AS p99_ns
FROM percentiles JOIN sums USING (host, object, function)
ORDER BY p99_ns DESC LIMIT 50;

-- query: build against build
-- Each host has one vote: `errors` says how many standard errors the change is away from 0.
-- `ctrace fleet diff` judges it with an interval, corrected for the number of functions.
WITH builds AS (
    SELECT coalesce(nullif(max(old), ''), min_by(version, struct(start_ns, version))) AS first,
        coalesce(nullif(max(new), ''), max_by(version, struct(start_ns, version))) AS last
    FROM functions CROSS JOIN asked WHERE version IS NOT NULL),
by_host AS (
    SELECT function, object, host, startswith(version, last) AS is_new,
        sum(timed_ns) / sum(timed) AS mean_ns, sum(timed) AS timed
    FROM functions CROSS JOIN builds
    WHERE timed > 0 AND (startswith(version, first) OR startswith(version, last))
    GROUP BY function, object, host, is_new),
sides AS (
    SELECT function, object, is_new, sum(timed) AS timed, count(*) AS hosts,
        sum(mean_ns * timed) / sum(timed) AS mean_ns, avg(ln(mean_ns)) AS log_ns,
        var_samp(ln(mean_ns)) / count(*) AS error
    FROM by_host WHERE mean_ns > 0 GROUP BY function, object, is_new)
SELECT o.function, o.object, o.hosts AS old_hosts, n.hosts AS new_hosts, o.timed AS old_calls,
    n.timed AS new_calls, o.mean_ns AS old_mean_ns, n.mean_ns AS new_mean_ns,
    100 * (n.mean_ns / o.mean_ns - 1) AS change_percent,
    (n.log_ns - o.log_ns) / nullif(sqrt(o.error + n.error), 0) AS errors
FROM sides o JOIN sides n ON o.function = n.function AND o.object = n.object
WHERE n.is_new AND NOT o.is_new ORDER BY abs(errors) DESC NULLS LAST LIMIT 50;

-- query: a host that differs
-- How far a host is from the middle of all hosts, in the spread of the hosts between.
WITH by_host AS (
    SELECT function, object, host, sum(timed_ns) / sum(timed) AS mean_ns
    FROM functions WHERE timed > 0 GROUP BY function, object, host),
of_all AS (
    SELECT function, object, median(mean_ns) AS middle_ns FROM by_host GROUP BY function, object),
spreads AS (
    SELECT function, object, middle_ns, median(abs(mean_ns - middle_ns)) AS spread_ns
    FROM by_host JOIN of_all USING (function, object) GROUP BY function, object, middle_ns)
SELECT host, function, object, mean_ns, middle_ns AS of_all_ns,
    (mean_ns - middle_ns) / nullif(1.4826D * spread_ns, 0) AS deviations
FROM by_host JOIN spreads USING (function, object)
ORDER BY abs(deviations) DESC NULLS LAST LIMIT 50;

-- query: flame graph
-- Folded stacks, for flamegraph.pl, inferno or speedscope. `ctrace fleet flamegraph` draws them.
SELECT array_join(transform(path, name -> replace(name, ';', ':')), ';') || ' ' || sum(self_ns) AS line
FROM paths GROUP BY path HAVING sum(self_ns) > 0 ORDER BY line;

-- query: cost of tracing
SELECT unit, count(DISTINCT host) AS hosts, sum(calls) AS calls,
    100 * sum(cost_ns) FILTER (WHERE cpu_ns IS NOT NULL) / nullif(sum(cpu_ns), 0) AS percent_of_cpu,
    sum(lost_events) AS lost_events
FROM targets GROUP BY unit ORDER BY percent_of_cpu DESC NULLS LAST;

-- query: slowest calls
-- Single calls, with the callee that took most of each. `ctrace fleet slow` shows all that was inside.
-- The table is there once a call took `slow_from`.
CREATE OR REPLACE TEMPORARY VIEW slow_calls
USING parquet OPTIONS (path '${fleet}/slow_calls', pathGlobFilter '*.parquet');
SELECT function, object, host, unit, tid, call_start_ns, duration_ns, self_ns,
    array_join(path, ' > ') AS path, get(inside, 0) AS most_in, get(inside_ns, 0) AS most_in_ns
FROM slow_calls
ORDER BY duration_ns DESC, call_start_ns, host, tid LIMIT 50;
