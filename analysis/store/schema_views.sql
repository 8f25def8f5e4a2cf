-- What is read from the tables of schema.sql.

-- One value per run and metric, of the attempt that counts. A total over nodes is NULL as soon as
-- one node has no record, a record cut short, or no value in it: a part is not the whole. So are
-- those of processes when a container's processes were (maybe) no children of the job
-- (docs/launchers.md). A node that no step came to adds nothing to what processes use. Joules and
-- bytes of the network are whole nodes': NULL unless the job had each for itself (what no scheduler
-- has started is told as the node's).
CREATE OR REPLACE VIEW measurements AS
WITH counted AS (
    SELECT a.run_id, a.attempt, a.elapsed_s, len(a.nodes) AS nodes
    FROM attempts AS a JOIN runs AS r ON r.run_id = a.run_id AND r.attempt = a.attempt
),
weighed AS (
    SELECT *,
        CASE WHEN cpu_s IS NULL THEN json_extract_string(record, '$.processes.named') = 'false'
            ELSE FALSE END IS TRUE AS idle,
        CASE WHEN exclusive IS NULL THEN json_extract_string(record, '$.job.scheduler') = 'none'
            ELSE exclusive END IS TRUE AS alone
    FROM records
),
totals AS (
    SELECT run_id, attempt, count(*) AS records, bool_and(complete) AS complete,
        CASE WHEN bool_and(alone) AND count(energy_j) = count(*) THEN sum(energy_j) END AS energy_j,
        CASE WHEN bool_and(idle OR cpu_s IS NOT NULL) THEN sum(cpu_s) END AS cpu_s,
        CASE WHEN bool_and(idle OR max_memory_bytes IS NOT NULL) THEN max(max_memory_bytes) END
            AS max_memory_bytes,
        CASE WHEN bool_and(idle OR rchar_bytes IS NOT NULL) THEN sum(rchar_bytes) END AS rchar_bytes,
        CASE WHEN bool_and(idle OR wchar_bytes IS NOT NULL) THEN sum(wchar_bytes) END AS wchar_bytes,
        CASE WHEN bool_and(idle OR read_bytes IS NOT NULL) THEN sum(read_bytes) END AS read_bytes,
        CASE WHEN bool_and(idle OR write_bytes IS NOT NULL) THEN sum(write_bytes) END AS write_bytes,
        CASE WHEN bool_and(alone) AND count(rx_bytes) = count(*) THEN sum(rx_bytes) END AS rx_bytes,
        CASE WHEN bool_and(alone) AND count(tx_bytes) = count(*) THEN sum(tx_bytes) END AS tx_bytes
    FROM weighed GROUP BY run_id, attempt
),
elsewhere AS (
    SELECT DISTINCT run_id, attempt FROM tags
    WHERE key = 'launcher_weighed' AND value <> 'yes'
),
metrics AS (
    SELECT * FROM (VALUES
        ('elapsed_s', 's'), ('energy_j', 'J'), ('cpu_s', 's'), ('max_memory_bytes', 'bytes'),
        ('rchar_bytes', 'bytes'), ('wchar_bytes', 'bytes'), ('read_bytes', 'bytes'),
        ('write_bytes', 'bytes'), ('rx_bytes', 'bytes'), ('tx_bytes', 'bytes')
    ) AS m (metric, unit)
)
SELECT c.run_id, c.attempt, r.metric, avg(r.value) AS value, any_value(r.unit) AS unit,
    any_value(r.better) AS better, bool_or(r.is_primary) AS is_primary
FROM counted AS c JOIN results AS r ON r.run_id = c.run_id AND r.attempt = c.attempt
GROUP BY c.run_id, c.attempt, r.metric
UNION ALL
SELECT c.run_id, c.attempt, m.metric,
    CASE
        WHEN m.metric = 'elapsed_s' THEN c.elapsed_s
        WHEN NOT t.complete OR t.records < c.nodes THEN NULL
        WHEN m.metric = 'energy_j' THEN t.energy_j
        WHEN m.metric = 'rx_bytes' THEN t.rx_bytes
        WHEN m.metric = 'tx_bytes' THEN t.tx_bytes
        WHEN e.run_id IS NOT NULL THEN NULL
        WHEN m.metric = 'cpu_s' THEN t.cpu_s
        WHEN m.metric = 'max_memory_bytes' THEN t.max_memory_bytes
        WHEN m.metric = 'rchar_bytes' THEN t.rchar_bytes
        WHEN m.metric = 'wchar_bytes' THEN t.wchar_bytes
        WHEN m.metric = 'read_bytes' THEN t.read_bytes
        WHEN m.metric = 'write_bytes' THEN t.write_bytes
    END AS value,
    m.unit, 'lower' AS better, FALSE AS is_primary
FROM counted AS c CROSS JOIN metrics AS m
LEFT JOIN totals AS t ON t.run_id = c.run_id AND t.attempt = c.attempt
LEFT JOIN elsewhere AS e ON e.run_id = c.run_id AND e.attempt = c.attempt;
COMMENT ON VIEW measurements IS
    'run_id, attempt, metric, value, unit, better, is_primary: one value per run and metric';
