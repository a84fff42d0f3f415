-- Questions to the tables of a fleet, for Trino.
--
-- NEVER RUN BY A TRINO. Trino's own grammar takes this file, and what stands below the first `-- query:`
-- gives the numbers of duckdb.sql when it is translated for DuckDB.
--
--   trino --catalog hive --schema fleet --file docs/fleet/trino.sql
--
-- Each query stands under a line `-- query: NAME`. docs/fleet/tables.md explains the columns. The catalog
-- needs the Hive connector, with a metastore that lets this user make tables. Write the place of the
-- tables in place of `s3://fleet`. Trino reads every file in a folder, so leave out those that a daemon is
-- writing (`*.part`).

CREATE SCHEMA IF NOT EXISTS fleet;

CREATE TABLE IF NOT EXISTS functions (
    schema integer, start_ns bigint, end_ns bigint, target varchar, pid integer, version varchar,
    function varchar, object varchar, kind varchar, marker_group varchar, short_name varchar,
    full_name varchar, build_id varchar, calls bigint, timed bigint, untimed bigint, headless bigint,
    total_ns bigint, timed_ns bigint, self_ns bigint, active_ns bigint, innermost_ns bigint,
    squares decimal(38, 0), min_ns bigint, max_ns bigint, buckets array(integer), counts array(bigint),
    cost_ns bigint, armed_ns bigint, lost_events bigint, host varchar, day date, unit varchar)
WITH (format = 'PARQUET', external_location = 's3://fleet/functions',
    partitioned_by = ARRAY['host', 'day', 'unit']);
CREATE TABLE IF NOT EXISTS paths (
    schema integer, start_ns bigint, end_ns bigint, target varchar, pid integer, version varchar,
    path array(varchar), calls bigint, total_ns bigint, self_ns bigint, lost_events bigint,
    timed bigint, untimed bigint, min_ns bigint, max_ns bigint, buckets array(integer),
    counts array(bigint), host varchar, day date, unit varchar)
WITH (format = 'PARQUET', external_location = 's3://fleet/paths',
    partitioned_by = ARRAY['host', 'day', 'unit']);
CREATE TABLE IF NOT EXISTS targets (
    schema integer, start_ns bigint, end_ns bigint, target varchar, pid integer, processes integer,
    version varchar, program varchar, functions bigint, calls bigint, cost_ns bigint, cpu_ns bigint,
    lost_events bigint, late_events bigint, decode_errors bigint, untimed bigint, open bigint,
    headless bigint, calls_without_path bigint, host varchar, day date, unit varchar)
WITH (format = 'PARQUET', external_location = 's3://fleet/targets',
    partitioned_by = ARRAY['host', 'day', 'unit']);

-- A table `paths` that an earlier version of this file made lacks columns. Once:
--   ALTER TABLE paths ADD COLUMN timed bigint;
--   ALTER TABLE paths ADD COLUMN untimed bigint;
--   ALTER TABLE paths ADD COLUMN min_ns bigint;
--   ALTER TABLE paths ADD COLUMN max_ns bigint;
--   ALTER TABLE paths ADD COLUMN buckets array(integer);
--   ALTER TABLE paths ADD COLUMN counts array(bigint);

-- Finds the folders of new hosts, days and units. Run it again when there are some.
CALL system.sync_partition_metadata('fleet', 'functions', 'FULL');
CALL system.sync_partition_metadata('fleet', 'paths', 'FULL');
CALL system.sync_partition_metadata('fleet', 'targets', 'FULL');

-- Calls by bucket, and its middle in nanoseconds: sixteen buckets an octave. Percentiles are the middle
-- of the first bucket that reaches their rank.
CREATE OR REPLACE VIEW calls_by_bucket AS
WITH single AS (
    SELECT host, unit, version, object, function, each.bucket, each.calls,
        greatest(CAST(floor(each.bucket / 16E0) AS integer) - 1, 0) AS octave
    FROM functions CROSS JOIN UNNEST(buckets, counts) AS each (bucket, calls))
SELECT host, unit, version, object, function, bucket, sum(calls) AS calls,
    CAST((bucket - 16 * octave) * power(2, octave) + floor(power(2, octave) / 2) AS bigint) AS middle_ns
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
-- Write how the ids of two builds begin in place of the two NULL. Otherwise these are the builds that were
-- seen first and last. Each host has one vote: `errors` says how many standard errors the change is away
-- from 0. `ctrace fleet diff` judges it with an interval, corrected for the number of functions.
WITH builds AS (
    SELECT coalesce(CAST(NULL AS varchar), min_by(version, ROW(start_ns, version))) AS old,
        coalesce(CAST(NULL AS varchar), max_by(version, ROW(start_ns, version))) AS new
    FROM functions WHERE version IS NOT NULL),
chosen AS (
    SELECT function, object, host, starts_with(version, new) AS is_new, timed, timed_ns
    FROM functions CROSS JOIN builds
    WHERE timed > 0 AND (starts_with(version, old) OR starts_with(version, new))),
by_host AS (
    SELECT function, object, host, is_new,
        CAST(sum(timed_ns) AS double) / sum(timed) AS mean_ns, sum(timed) AS timed
    FROM chosen GROUP BY function, object, host, is_new),
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
WHERE n.is_new AND NOT o.is_new
ORDER BY abs((n.log_ns - o.log_ns) / nullif(sqrt(o.error + n.error), 0)) DESC NULLS LAST LIMIT 50;

-- query: a host that differs
-- How far a host is from the middle of all hosts, in the spread of the hosts between. Trino's percentiles
-- are approximate, so the middle ones are taken by their ranks: two of an even number.
WITH by_host AS (
    SELECT function, object, host, CAST(sum(timed_ns) AS double) / sum(timed) AS mean_ns
    FROM functions WHERE timed > 0 GROUP BY function, object, host),
ranks AS (
    SELECT function, object, mean_ns, count(*) OVER (PARTITION BY function, object) AS hosts,
        row_number() OVER (PARTITION BY function, object ORDER BY mean_ns) AS place
    FROM by_host),
of_all AS (
    SELECT function, object, avg(mean_ns) AS middle_ns FROM ranks
    WHERE 2 * place BETWEEN hosts AND hosts + 2 GROUP BY function, object),
distances AS (
    SELECT host, function, object, mean_ns, middle_ns, abs(mean_ns - middle_ns) AS distance_ns
    FROM by_host JOIN of_all USING (function, object)),
distance_ranks AS (
    SELECT function, object, distance_ns, count(*) OVER (PARTITION BY function, object) AS hosts,
        row_number() OVER (PARTITION BY function, object ORDER BY distance_ns) AS place
    FROM distances),
spreads AS (
    SELECT function, object, avg(distance_ns) AS spread_ns FROM distance_ranks
    WHERE 2 * place BETWEEN hosts AND hosts + 2 GROUP BY function, object)
SELECT host, function, object, mean_ns, middle_ns AS of_all_ns,
    (mean_ns - middle_ns) / nullif(1.4826E0 * spread_ns, 0) AS deviations
FROM distances JOIN spreads USING (function, object)
ORDER BY abs((mean_ns - middle_ns) / nullif(1.4826E0 * spread_ns, 0)) DESC NULLS LAST LIMIT 50;

-- query: flame graph
-- Folded stacks, for flamegraph.pl, inferno or speedscope. `ctrace fleet flamegraph` draws them.
SELECT array_join(transform(path, name -> replace(name, ';', ':')), ';')
    || ' ' || CAST(sum(self_ns) AS varchar) AS line
FROM paths GROUP BY path HAVING sum(self_ns) > 0 ORDER BY line;

-- query: cost of tracing
SELECT unit, count(DISTINCT host) AS hosts, sum(calls) AS calls,
    1E2 * sum(cost_ns) FILTER (WHERE cpu_ns IS NOT NULL) / nullif(sum(cpu_ns), 0) AS percent_of_cpu,
    sum(lost_events) AS lost_events
FROM targets GROUP BY unit ORDER BY percent_of_cpu DESC NULLS LAST;

-- query: slowest calls
-- Single calls, with the callee that took most of each. `ctrace fleet slow` shows all that was inside.
-- The table is there once a call took `slow_from`.
CREATE TABLE IF NOT EXISTS slow_calls (
    schema integer, start_ns bigint, end_ns bigint, target varchar, pid integer, version varchar,
    function varchar, object varchar, kind varchar, marker_group varchar, short_name varchar,
    full_name varchar, process integer, tid integer, thread varchar, call_start_ns bigint,
    duration_ns bigint, self_ns bigint, path array(varchar), inside array(varchar),
    inside_calls array(bigint), inside_ns array(bigint), lost_events bigint, host varchar, day date,
    unit varchar)
WITH (format = 'PARQUET', external_location = 's3://fleet/slow_calls',
    partitioned_by = ARRAY['host', 'day', 'unit']);
CALL system.sync_partition_metadata('fleet', 'slow_calls', 'FULL');
SELECT function, object, host, unit, tid, call_start_ns, duration_ns, self_ns,
    array_join(path, ' > ') AS path, element_at(inside, 1) AS most_in,
    element_at(inside_ns, 1) AS most_in_ns
FROM slow_calls
ORDER BY duration_ns DESC, call_start_ns, host, tid LIMIT 50;
