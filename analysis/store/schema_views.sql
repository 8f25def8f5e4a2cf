-- What is read from the tables of schema.sql; filled in as that is.

-- What the program itself used, without our shells and srun, holds where the job has used no more CPU
-- time than those shells know of: what is beyond that, nobody has waited for.
CREATE OR REPLACE VIEW own_usage AS
SELECT u.*
FROM command_usage AS u JOIN attempts AS a USING (run_id, attempt)
JOIN (
    SELECT run_id, attempt, sum(cpu_s) AS cpu_s FROM records
    GROUP BY run_id, attempt HAVING bool_and(complete) AND count(cpu_s) > 0
) AS t USING (run_id, attempt)
WHERE t.cpu_s - u.shells_cpu_s <= 0.05 * (1 + a.clients) + 0.02 * t.cpu_s;
COMMENT ON VIEW own_usage IS 'the rows of command_usage that hold';

-- One value per run and metric, of the attempt that counts. A total over nodes is NULL as soon as
-- one node has no record, a record cut short, or no value in it: a part is not the whole; where only
-- its processes' part was cut short, joules and bytes of the network stand. So are
-- those of processes when a container's processes were (maybe) no children of the job
-- (docs/launchers.md). A node that no step came to adds nothing to what processes use. What processes
-- use is the benchmark's own program's where that was measured (command_usage). Joules and
-- bytes of the network are whole nodes': NULL unless the job had each for itself (what no scheduler
-- has started is told as the node's).
CREATE OR REPLACE VIEW measurements AS
WITH counted AS (
    SELECT a.run_id, a.attempt, a.elapsed_s, len(a.nodes) AS nodes
    FROM attempts AS a JOIN runs AS r ON r.run_id = a.run_id AND r.attempt = a.attempt
),
measured AS (
    SELECT *,
        CASE WHEN cpu_s IS NULL THEN json_extract_string(record, '$.processes.named') = 'false'
            ELSE FALSE END IS TRUE AS idle,
        CASE WHEN exclusive IS NULL THEN json_extract_string(record, '$.job.scheduler') = 'none'
            ELSE exclusive END IS TRUE AS alone,
        complete OR json_extract_string(record, '$.incomplete_of') IS NOT DISTINCT FROM 'processes'
            AS node_told
    FROM records
),
totals AS (
    SELECT run_id, attempt, count(*) AS records, bool_and(complete) AS complete,
        bool_and(node_told) AS nodes_told,
        @totals_over_nodes@
    FROM measured GROUP BY run_id, attempt
),
elsewhere AS (
    SELECT DISTINCT run_id, attempt FROM tags
    WHERE key = 'launcher_measured' AND value <> 'yes'
),
-- Linux charges no process with what it reads on FUSE and OrangeFS, nor before 6.8 with what it writes
-- on FUSE (fs/fuse/file.c): the totals would be those of other file systems.
uncharged AS (
    SELECT DISTINCT run_id, attempt, value = 'pvfs2' AS reads_only FROM tags
    WHERE key = 'mount.type' AND (value IN ('fuse', 'pvfs2') OR value LIKE 'fuse.%')
),
metrics AS (
    SELECT * FROM (VALUES
        ('elapsed_s', 's'), @metrics@
    ) AS m (metric, unit)
)
SELECT c.run_id, c.attempt, r.metric,
    -- Of rates the harmonic mean (analysis/stats/basics.py), where none is 0 or not finite.
    CASE
        WHEN any_value(r.better) = 'higher'
            AND (any_value(r.unit) LIKE '%/s' OR any_value(r.unit) LIKE '%_per_s')
            AND min(r.value) > 0 AND max(r.value) <= 1.7976931348623157e308
            THEN 1 / avg(1 / nullif(r.value, 0))
        ELSE avg(r.value)
    END AS value, any_value(r.unit) AS unit,
    any_value(r.better) AS better, bool_or(r.is_primary) AS is_primary
FROM counted AS c JOIN results AS r ON r.run_id = c.run_id AND r.attempt = c.attempt
GROUP BY c.run_id, c.attempt, r.metric
UNION ALL
SELECT c.run_id, c.attempt, m.metric,
    CASE
        WHEN m.metric = 'elapsed_s' THEN c.elapsed_s
        WHEN NOT t.nodes_told OR t.records < c.nodes THEN NULL
        @metrics_of_nodes@
        WHEN NOT t.complete OR e.run_id IS NOT NULL THEN NULL
        WHEN m.metric = 'read_bytes' AND f.run_id IS NOT NULL THEN NULL
        WHEN m.metric = 'write_bytes' AND NOT f.reads_only THEN NULL
        @metrics_of_processes@
    END AS value,
    m.unit, 'lower' AS better, FALSE AS is_primary
FROM counted AS c CROSS JOIN metrics AS m
LEFT JOIN totals AS t ON t.run_id = c.run_id AND t.attempt = c.attempt
LEFT JOIN own_usage AS o ON o.run_id = c.run_id AND o.attempt = c.attempt
LEFT JOIN elsewhere AS e ON e.run_id = c.run_id AND e.attempt = c.attempt
LEFT JOIN uncharged AS f ON f.run_id = c.run_id AND f.attempt = c.attempt;
COMMENT ON VIEW measurements IS
    'run_id, attempt, metric, value, unit, better, is_primary: one value per run and metric';
