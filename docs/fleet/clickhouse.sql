-- Questions to the tables of a fleet, for ClickHouse and chDB (run with chDB 26.9):
--
--   clickhouse local --param_fleet=/srv/fleet --queries-file docs/fleet/clickhouse.sql
--
-- Each query stands under a line `-- query: NAME`. docs/fleet/tables.md explains the columns. A server
-- reads folders below its `user_files_path` only. For an object store, write s3(…) in place of file(…).

-- Sums are of 64 bits: calls that take more than 292 years in all, as those of a thousand busy threads do in
-- a third of a year, need a choice of days (WHERE day >= …) in the views below.

-- A folder's names are columns: host, day and unit. Their types are told here, as the host 7 would be a
-- number otherwise, and 012 the number 12. So are those of the columns: ClickHouse takes the first file's
-- word for which of them are never null. As it reads the folders' names as they are, %2F is not / yet.
SET use_hive_partitioning = 1;
SET join_use_nulls = 1;
SET prefer_column_name_to_alias = 1;

-- The builds to compare: how their ids begin. '' stands for the one that was seen first, or last.
SET param_old = '';
SET param_new = '';

CREATE OR REPLACE TABLE functions_files AS
file({fleet:String} || '/functions/*/*/*/*.parquet', Parquet,
    'host String, day Date, unit String, start_ns Int64, end_ns Int64, target String, pid Int32,
    version Nullable(String), function String, object String, kind String, calls Int64, timed Int64,
    untimed Int64, total_ns Int64, timed_ns Int64, self_ns Int64, min_ns Nullable(Int64),
    max_ns Nullable(Int64), buckets Array(Int32), counts Array(Int64), cost_ns Int64, armed_ns Int64,
    lost_events Int64');
CREATE OR REPLACE TABLE paths_files AS
file({fleet:String} || '/paths/*/*/*/*.parquet', Parquet,
    'host String, day Date, unit String, start_ns Int64, end_ns Int64, target String, pid Int32,
    version Nullable(String), path Array(String), calls Int64, total_ns Int64, self_ns Int64,
    lost_events Int64, timed Int64, untimed Int64, min_ns Nullable(Int64), max_ns Nullable(Int64),
    buckets Array(Int32), counts Array(Int64)');
CREATE OR REPLACE TABLE slow_calls_files AS
file({fleet:String} || '/slow_calls/*/*/*/*.parquet', Parquet,
    'host String, day Date, unit String, start_ns Int64, end_ns Int64, target String, pid Int32,
    version Nullable(String), function String, object String, kind String, process Int32, tid Int32,
    thread String, call_start_ns Int64, duration_ns Int64, self_ns Nullable(Int64), path Array(String),
    inside Array(String), inside_calls Array(Int64), inside_ns Array(Int64), lost_events Int64');
CREATE OR REPLACE TABLE targets_files AS
file({fleet:String} || '/targets/*/*/*/*.parquet', Parquet,
    'host String, day Date, unit String, start_ns Int64, end_ns Int64, target String, pid Int32,
    version Nullable(String), program String, calls Int64, cost_ns Int64, cpu_ns Nullable(Int64),
    lost_events Int64, late_events Int64, decode_errors Int64, untimed Int64');

CREATE OR REPLACE VIEW functions AS
SELECT * REPLACE (decodeURLComponent(host) AS host, decodeURLComponent(unit) AS unit)
FROM functions_files;
CREATE OR REPLACE VIEW paths AS
SELECT * REPLACE (decodeURLComponent(host) AS host, decodeURLComponent(unit) AS unit)
FROM paths_files;
CREATE OR REPLACE VIEW slow_calls AS
SELECT * REPLACE (decodeURLComponent(host) AS host, decodeURLComponent(unit) AS unit)
FROM slow_calls_files;
CREATE OR REPLACE VIEW targets AS
SELECT * REPLACE (decodeURLComponent(host) AS host, decodeURLComponent(unit) AS unit)
FROM targets_files;

-- Calls by bucket, and its middle in nanoseconds: sixteen buckets an octave. Percentiles are the middle
-- of the first bucket that reaches their rank.
CREATE OR REPLACE VIEW calls_by_bucket AS
WITH greatest(intDiv(bucket, 16) - 1, 0) AS octave
SELECT host, unit, version, object, function, bucket, sum(count) AS calls,
    bitShiftLeft(toInt64(bucket - 16 * octave), octave)
        + intDiv(bitShiftLeft(toInt64(1), octave), 2) AS middle_ns
FROM functions ARRAY JOIN buckets AS bucket, counts AS count
GROUP BY host, unit, version, object, function, bucket;

-- query: slowest functions
WITH sums AS (
    SELECT object, function, sum(calls) AS calls, sum(total_ns) AS total_ns, sum(self_ns) AS self_ns,
        min(min_ns) AS min_ns, max(max_ns) AS max_ns, uniqExact(host) AS hosts
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
        minIf(middle_ns, up_to * 1000 >= timed * 500) AS p50,
        minIf(middle_ns, up_to * 1000 >= timed * 990) AS p99
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
        sum(calls) OVER (PARTITION BY host, object, function) AS of_all,
        sum(calls) OVER (PARTITION BY host, object, function ORDER BY middle_ns) AS up_to
    FROM by_bucket),
percentiles AS (
    SELECT host, object, function, any(of_all) AS timed,
        minIf(middle_ns, up_to * 1000 >= of_all * 990) AS p99
    FROM ranks GROUP BY host, object, function)
SELECT function, object, host, timed, least(greatest(p99, min_ns), max_ns) AS p99_ns
FROM percentiles JOIN sums USING (host, object, function)
ORDER BY p99_ns DESC LIMIT 50;

-- query: build against build
-- Each host has one vote: `errors` says how many standard errors the change is away from 0.
-- `ctrace fleet diff` judges it with an interval, corrected for the number of functions.
WITH (
    SELECT (if({old:String} = '', argMin(version, (start_ns, version)), {old:String}),
        if({new:String} = '', argMax(version, (start_ns, version)), {new:String}))
    FROM functions) AS builds,
by_host AS (
    SELECT function, object, host, startsWith(version, builds.2) AS is_new,
        sum(timed_ns) / sum(timed) AS mean_ns, sum(timed) AS calls
    FROM functions
    WHERE timed > 0 AND (startsWith(version, builds.1) OR startsWith(version, builds.2))
    GROUP BY function, object, host, is_new),
sides AS (
    SELECT function, object, is_new, sum(calls) AS timed, count() AS hosts,
        sum(mean_ns * calls) / sum(calls) AS mean_of_all_ns, avg(log(mean_ns)) AS log_ns,
        if(count() > 1, varSamp(log(mean_ns)) / count(), NULL) AS error
    FROM by_host WHERE mean_ns > 0 GROUP BY function, object, is_new)
SELECT o.function AS function, o.object AS object, o.hosts AS old_hosts, n.hosts AS new_hosts,
    o.timed AS old_calls, n.timed AS new_calls, o.mean_of_all_ns AS old_mean_ns,
    n.mean_of_all_ns AS new_mean_ns,
    100 * (n.mean_of_all_ns / o.mean_of_all_ns - 1) AS change_percent,
    (n.log_ns - o.log_ns) / nullIf(sqrt(o.error + n.error), 0) AS errors
FROM sides AS o JOIN sides AS n ON o.function = n.function AND o.object = n.object
WHERE n.is_new AND NOT o.is_new ORDER BY abs(errors) DESC NULLS LAST LIMIT 50;

-- query: a host that differs
-- How far a host is from the middle of all hosts, in the spread of the hosts between.
WITH by_host AS (
    SELECT function, object, host, sum(timed_ns) / sum(timed) AS mean_ns
    FROM functions WHERE timed > 0 GROUP BY function, object, host),
of_all AS (
    SELECT function, object, groupArray(mean_ns) AS means,
        arrayReduce('quantileExactInclusive(0.5)', means) AS middle_ns,
        arrayReduce('quantileExactInclusive(0.5)', arrayMap(it -> abs(it - middle_ns), means))
            AS spread_ns
    FROM by_host GROUP BY function, object)
SELECT host, function, object, mean_ns, middle_ns AS of_all_ns,
    (mean_ns - middle_ns) / nullIf(1.4826 * spread_ns, 0) AS deviations
FROM by_host JOIN of_all USING (function, object)
ORDER BY abs(deviations) DESC NULLS LAST LIMIT 50;

-- query: flame graph
-- Folded stacks, for flamegraph.pl, inferno or speedscope. `ctrace fleet flamegraph` draws them.
SELECT arrayStringConcat(arrayMap(name -> replaceAll(name, ';', ':'), path), ';')
    || ' ' || toString(sum(self_ns)) AS line
FROM paths GROUP BY path HAVING sum(self_ns) > 0 ORDER BY line;

-- query: cost of tracing
SELECT unit, uniqExact(host) AS hosts, sum(calls) AS calls,
    100 * sumIf(cost_ns, cpu_ns IS NOT NULL) / nullIf(sum(cpu_ns), 0) AS percent_of_cpu,
    sum(lost_events) AS lost_events
FROM targets GROUP BY unit ORDER BY percent_of_cpu DESC NULLS LAST;

-- query: slowest calls
-- Single calls, with the callee that took most of each. `ctrace fleet slow` shows all that was inside.
SELECT function, object, host, unit, tid, call_start_ns, duration_ns, self_ns,
    arrayStringConcat(path, ' > ') AS path, nullIf(inside[1], '') AS most_in,
    if(empty(inside), NULL, inside_ns[1]) AS most_in_ns
FROM slow_calls
ORDER BY duration_ns DESC, call_start_ns, host, tid LIMIT 50;
