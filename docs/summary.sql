-- What `steelyard summary` prints: n and mean of every metric under every condition. It runs on DuckDB
-- and on Spark, once `runs`, `results` and `samples` are views of the Parquet files (docs/collect.md).
WITH good AS (
    SELECT run_id, attempt, variant, condition_label FROM runs
    WHERE state = 'completed' AND coalesce(valid, true)
), per_run AS (
    SELECT good.run_id, variant, condition_label, metric, max(better) = 'higher'
            AND (max(unit) LIKE '%/s' OR max(unit) LIKE '%_per_s') AND min(value) > 0 AS is_rate,
        CASE WHEN max(better) = 'higher'
            AND (max(unit) LIKE '%/s' OR max(unit) LIKE '%_per_s') AND min(value) > 0
            THEN 1 / avg(1 / nullif(value, 0)) ELSE avg(value) END AS value
    FROM good JOIN results ON results.run_id = good.run_id AND results.attempt = good.attempt
    GROUP BY good.run_id, variant, condition_label, metric
    UNION ALL
    SELECT good.run_id, variant, condition_label, 'samples.cpu_s', false, sum(node_s)
    FROM good JOIN (
        SELECT run_id, attempt, node, max(cpu_s) AS node_s FROM samples
        GROUP BY run_id, attempt, node
    ) AS nodes ON nodes.run_id = good.run_id AND nodes.attempt = good.attempt
    GROUP BY good.run_id, variant, condition_label
)
SELECT variant, condition_label, metric, count(*) AS n,
    CASE WHEN bool_and(is_rate) THEN 1 / avg(1 / nullif(value, 0)) ELSE avg(value) END AS mean
FROM per_run
WHERE abs(value) < 1e308   -- no NULL, no infinity, and no NaN, which both sort above all numbers
GROUP BY variant, condition_label, metric ORDER BY variant, condition_label, metric
