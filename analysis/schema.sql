-- The database of a study, schema version 1: docs/formats.md part 8, which a test holds against
-- this file. Units stand in the names; NULL is "not known" and never 0.
-- Plain tables without indexes: DuckDB scans columns, and a collect replaces whole tables in one
-- transaction, which unique indexes would make slow. Keys are named in the comments and checked
-- by check_keys() in database.py before the commit.

CREATE TABLE meta (
    schema_version INTEGER NOT NULL,
    study VARCHAR NOT NULL,
    seed BIGINT,
    toml VARCHAR,
    toml_sha256 VARCHAR,
    steelyard VARCHAR NOT NULL,
    collected_unix_s DOUBLE NOT NULL,
    baseline JSON,
    factors JSON
);
COMMENT ON TABLE meta IS 'one row: what this database is and when it was collected';
COMMENT ON COLUMN meta.toml IS 'the study file, to the byte';
COMMENT ON COLUMN meta.steelyard IS 'version of the program that collected';
COMMENT ON COLUMN meta.baseline IS 'object from factor to level';
COMMENT ON COLUMN meta.factors IS 'object from factor to its list of levels';

CREATE TABLE runs (
    run_id VARCHAR NOT NULL,
    block INTEGER,
    position INTEGER,
    benchmark VARCHAR NOT NULL,
    variant VARCHAR NOT NULL,
    parameters JSON NOT NULL,
    condition JSON NOT NULL,
    condition_label VARCHAR NOT NULL,
    is_baseline BOOLEAN NOT NULL,
    repeat INTEGER,
    attempts INTEGER NOT NULL,
    attempt VARCHAR,
    state VARCHAR NOT NULL CHECK (state IN (
        'planned', 'pending', 'running', 'completed', 'failed', 'timeout', 'cancelled',
        'node_fail', 'out_of_memory', 'requeued', 'lost')),
    reason VARCHAR,
    valid BOOLEAN,
    invalid_reason VARCHAR
);
COMMENT ON TABLE runs IS 'one row per planned run; key run_id';
COMMENT ON COLUMN runs.block IS 'the block of interleaved conditions it stands in';
COMMENT ON COLUMN runs.position IS 'its place in the order of submission';
COMMENT ON COLUMN runs.attempts IS 'how many rows of attempts belong to it';
COMMENT ON COLUMN runs.attempt IS 'the attempt that counts: the last; NULL: none yet';
COMMENT ON COLUMN runs.state IS 'state of that attempt, planned without one';
COMMENT ON COLUMN runs.reason IS 'why it is not completed, one sentence';
COMMENT ON COLUMN runs.valid IS 'the conditions were met; NULL as long as it is not completed';

CREATE TABLE attempts (
    run_id VARCHAR NOT NULL,
    attempt VARCHAR NOT NULL,
    scheduler VARCHAR NOT NULL,
    cluster VARCHAR,
    job_id VARCHAR,
    array_job_id VARCHAR,
    array_task_id VARCHAR,
    restart_count INTEGER,
    state VARCHAR NOT NULL CHECK (state IN (
        'pending', 'running', 'completed', 'failed', 'timeout', 'cancelled',
        'node_fail', 'out_of_memory', 'requeued', 'lost')),
    reason VARCHAR,
    start_unix_s DOUBLE,
    end_unix_s DOUBLE,
    elapsed_s DOUBLE,
    wait_s DOUBLE,
    exit_code INTEGER,
    clients INTEGER,
    nodes VARCHAR[]
);
COMMENT ON TABLE attempts IS 'one row per execution of a run, waiting ones too; key run_id, attempt';
COMMENT ON COLUMN attempts.attempt IS
    'JOBID.RESTART with the raw job id, local.N, or ARRAY_TASK.0 as long as the task has no id of its own';
COMMENT ON COLUMN attempts.job_id IS 'raw job id; NULL as long as the task has none';
COMMENT ON COLUMN attempts.reason IS 'why it is not completed, one sentence';
COMMENT ON COLUMN attempts.start_unix_s IS 'from result.json, else from the accounting (whole seconds)';
COMMENT ON COLUMN attempts.elapsed_s IS
    'of the benchmark, monotonic clock, from result.json; else the job''s from the accounting';
COMMENT ON COLUMN attempts.wait_s IS 'from submission to start, as the accounting has them';
COMMENT ON COLUMN attempts.exit_code IS
    'of the job in the accounting (128 + signal when killed), else the largest of the clients';
COMMENT ON COLUMN attempts.nodes IS 'names as the scheduler has them';

CREATE TABLE results (
    run_id VARCHAR NOT NULL,
    attempt VARCHAR NOT NULL,
    client INTEGER NOT NULL,
    iteration INTEGER NOT NULL,
    metric VARCHAR NOT NULL,
    value DOUBLE,
    unit VARCHAR,
    better VARCHAR CHECK (better IN ('lower', 'higher')),
    is_primary BOOLEAN NOT NULL
);
COMMENT ON TABLE results IS
    'one row per figure read from a benchmark''s output; key run_id, attempt, client, iteration, metric';
COMMENT ON COLUMN results.client IS 'counts from 0';
COMMENT ON COLUMN results.iteration IS 'counts from 1 inside a run';
COMMENT ON COLUMN results.better IS 'which direction is better; NULL: neither';

CREATE TABLE records (
    run_id VARCHAR NOT NULL,
    attempt VARCHAR NOT NULL,
    node VARCHAR NOT NULL,
    complete BOOLEAN NOT NULL,
    incomplete_reason VARCHAR,
    node_type VARCHAR,
    vm VARCHAR,
    container VARCHAR,
    kernel VARCHAR,
    cpu_model VARCHAR,
    exclusive BOOLEAN,
    start_unix_s DOUBLE,
    end_unix_s DOUBLE,
    elapsed_s DOUBLE,
    energy_j DOUBLE,
    cpu_s DOUBLE,
    max_memory_bytes BIGINT,
    rchar_bytes BIGINT,
    wchar_bytes BIGINT,
    read_bytes BIGINT,
    write_bytes BIGINT,
    rx_bytes BIGINT,
    tx_bytes BIGINT,
    sent_segments BIGINT,
    retransmitted_segments BIGINT,
    samples BIGINT,
    samples_lost BIGINT,
    missed_deadlines BIGINT,
    sampler_cpu_s DOUBLE,
    record JSON NOT NULL
);
COMMENT ON TABLE records IS 'one row per job and node; key run_id, attempt, node';
COMMENT ON COLUMN records.complete IS
    'false: the totals are those of the last sample and cover only a part of the job';
COMMENT ON COLUMN records.energy_j IS 'of the node: RAPL knows no jobs; read with exclusive';
COMMENT ON COLUMN records.rx_bytes IS 'of the node: sum over its uplinks';
COMMENT ON COLUMN records.tx_bytes IS 'of the node: sum over its uplinks';
COMMENT ON COLUMN records.sampler_cpu_s IS 'what the sampler itself used';
COMMENT ON COLUMN records.record IS 'the whole record as it was read, docs/formats.md part 1';

CREATE TABLE tags (
    run_id VARCHAR NOT NULL,
    attempt VARCHAR NOT NULL,
    node VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    value VARCHAR NOT NULL
);
COMMENT ON TABLE tags IS 'one row per tag of a record; key run_id, attempt, node, key';

CREATE TABLE samples (
    run_id VARCHAR NOT NULL,
    attempt VARCHAR NOT NULL,
    node VARCHAR NOT NULL,
    unix_s DOUBLE,
    elapsed_s DOUBLE,
    cpu_s DOUBLE,
    memory_bytes BIGINT,
    processes BIGINT,
    rchar_bytes BIGINT,
    wchar_bytes BIGINT,
    read_bytes BIGINT,
    write_bytes BIGINT,
    rx_bytes BIGINT,
    tx_bytes BIGINT,
    sent_segments BIGINT,
    retransmitted_segments BIGINT,
    pressure_cpu_s DOUBLE,
    pressure_io_s DOUBLE,
    pressure_memory_s DOUBLE,
    energy_j DOUBLE
);
COMMENT ON TABLE samples IS
    'one row per sample; counters start at 0 with the first sample of a node and only grow';

CREATE TABLE accounting (
    submission_id VARCHAR NOT NULL,
    run_id VARCHAR,
    attempt VARCHAR,
    JobID VARCHAR NOT NULL,
    JobIDRaw VARCHAR NOT NULL,
    JobName VARCHAR,
    Cluster VARCHAR,
    "User" VARCHAR,
    Account VARCHAR,
    "Partition" VARCHAR,
    State VARCHAR,
    ExitCode VARCHAR,
    DerivedExitCode VARCHAR,
    Reason VARCHAR,
    Submit VARCHAR,
    Eligible VARCHAR,
    Start VARCHAR,
    "End" VARCHAR,
    ElapsedRaw VARCHAR,
    CPUTimeRAW VARCHAR,
    TotalCPU VARCHAR,
    UserCPU VARCHAR,
    SystemCPU VARCHAR,
    MaxRSS VARCHAR,
    MaxVMSize VARCHAR,
    MaxDiskRead VARCHAR,
    MaxDiskWrite VARCHAR,
    ConsumedEnergyRaw VARCHAR,
    NNodes VARCHAR,
    NCPUS VARCHAR,
    NTasks VARCHAR,
    NodeList VARCHAR,
    ReqTRES VARCHAR,
    AllocTRES VARCHAR,
    "Constraints" VARCHAR,
    WorkDir VARCHAR,
    AdminComment VARCHAR,
    TimelimitRaw VARCHAR,
    Restarts VARCHAR
);
COMMENT ON TABLE accounting IS
    'one row per line of sacct, jobs and steps, duplicates of requeued jobs too, as text';
COMMENT ON COLUMN accounting.submission_id IS 'the line of submissions.jsonl that made the job';
COMMENT ON COLUMN accounting.attempt IS 'the attempt of the job; NULL, as run_id, in a row of waiting array tasks';
COMMENT ON COLUMN accounting.Start IS 'seconds since 1970 UTC, or Unknown, None';
COMMENT ON COLUMN accounting.ConsumedEnergyRaw IS
    'as Slurm has it, for the record only: 0 also means no counter, and rows must not be summed';
COMMENT ON COLUMN accounting.Restarts IS 'empty where this release of Slurm does not have it';

CREATE TABLE gaps (
    run_id VARCHAR,
    attempt VARCHAR,
    node VARCHAR,
    what VARCHAR NOT NULL CHECK (what IN (
        'accounting', 'job', 'result', 'output', 'record', 'incomplete_record', 'record_version',
        'samples', 'cut_samples')),
    reason VARCHAR NOT NULL
);
COMMENT ON TABLE gaps IS 'one row per thing that should be there and is not';
COMMENT ON COLUMN gaps.run_id IS 'NULL: concerns the whole study';
COMMENT ON COLUMN gaps.reason IS 'one sentence: what was expected, what was found';

CREATE TABLE sources (
    path VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    attempt VARCHAR NOT NULL,
    node VARCHAR NOT NULL,
    size_bytes BIGINT NOT NULL,
    modified_unix_ns BIGINT NOT NULL,
    samples BIGINT NOT NULL,
    reason VARCHAR
);
COMMENT ON TABLE sources IS
    'one row per file of samples that was read, so that the next collect reads only new ones; key path';
COMMENT ON COLUMN sources.path IS 'inside the study folder';
COMMENT ON COLUMN sources.samples IS 'rows of samples read from it';
COMMENT ON COLUMN sources.reason IS 'why lines of it were left out; NULL: none were';

-- One value per run and metric, of the attempt that counts. A total over nodes is NULL as soon as
-- one node has no record, a record cut short, or no value in it: a part is not the whole.
CREATE VIEW measurements AS
WITH counted AS (
    SELECT a.run_id, a.attempt, a.elapsed_s, len(a.nodes) AS nodes
    FROM attempts AS a JOIN runs AS r ON r.run_id = a.run_id AND r.attempt = a.attempt
),
totals AS (
    SELECT run_id, attempt, count(*) AS records, bool_and(complete) AS complete,
        CASE WHEN count(energy_j) = count(*) THEN sum(energy_j) END AS energy_j,
        CASE WHEN count(cpu_s) = count(*) THEN sum(cpu_s) END AS cpu_s,
        CASE WHEN count(max_memory_bytes) = count(*) THEN max(max_memory_bytes) END
            AS max_memory_bytes,
        CASE WHEN count(rchar_bytes) = count(*) THEN sum(rchar_bytes) END AS rchar_bytes,
        CASE WHEN count(wchar_bytes) = count(*) THEN sum(wchar_bytes) END AS wchar_bytes,
        CASE WHEN count(read_bytes) = count(*) THEN sum(read_bytes) END AS read_bytes,
        CASE WHEN count(write_bytes) = count(*) THEN sum(write_bytes) END AS write_bytes,
        CASE WHEN count(rx_bytes) = count(*) THEN sum(rx_bytes) END AS rx_bytes,
        CASE WHEN count(tx_bytes) = count(*) THEN sum(tx_bytes) END AS tx_bytes
    FROM records GROUP BY run_id, attempt
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
        WHEN m.metric = 'cpu_s' THEN t.cpu_s
        WHEN m.metric = 'max_memory_bytes' THEN t.max_memory_bytes
        WHEN m.metric = 'rchar_bytes' THEN t.rchar_bytes
        WHEN m.metric = 'wchar_bytes' THEN t.wchar_bytes
        WHEN m.metric = 'read_bytes' THEN t.read_bytes
        WHEN m.metric = 'write_bytes' THEN t.write_bytes
        WHEN m.metric = 'rx_bytes' THEN t.rx_bytes
        WHEN m.metric = 'tx_bytes' THEN t.tx_bytes
    END AS value,
    m.unit, 'lower' AS better, FALSE AS is_primary
FROM counted AS c CROSS JOIN metrics AS m
LEFT JOIN totals AS t ON t.run_id = c.run_id AND t.attempt = c.attempt;
COMMENT ON VIEW measurements IS
    'run_id, attempt, metric, value, unit, better, is_primary: one value per run and metric';
