-- The database of a cluster's jobs (docs/formats.md part 14). A job is one start of it: cluster,
-- job_id and submit_unix_s, for Slurm submits a requeued job anew.
CREATE TABLE meta (
    schema_version INTEGER,
    database_id VARCHAR,
    cluster VARCHAR,
    steelyard VARCHAR,
    collected_unix_s DOUBLE,
    asked_until_unix_s DOUBLE
);
CREATE TABLE jobs (
    cluster VARCHAR,
    job_id VARCHAR,
    submit_unix_s DOUBLE,
    task VARCHAR,
    restarts INTEGER,
    name VARCHAR,
    application VARCHAR,
    "user" VARCHAR,
    account VARCHAR,
    partition VARCHAR,
    state VARCHAR,
    reason VARCHAR,
    exit_code INTEGER,
    start_unix_s DOUBLE,
    end_unix_s DOUBLE,
    elapsed_s DOUBLE,
    nodes VARCHAR[],
    cpus INTEGER,
    cpus_asked INTEGER,
    memory_bytes BIGINT,
    gpus INTEGER,
    time_limit_s DOUBLE,
    node_type VARCHAR,
    tags JSON,
    energy_j DOUBLE,
    cpu_s DOUBLE,
    memory_used_bytes DOUBLE,
    rchar_bytes DOUBLE,
    wchar_bytes DOUBLE,
    read_bytes DOUBLE,
    write_bytes DOUBLE,
    sources JSON,
    missing JSON,
    marks VARCHAR[],
    whole_records INTEGER,
    is_over BOOLEAN,
    is_settled BOOLEAN,
    facts VARCHAR
);
CREATE TABLE records (
    cluster VARCHAR,
    job_id VARCHAR,
    submit_unix_s DOUBLE,
    node VARCHAR,
    file VARCHAR,
    sha256 VARCHAR,
    marks VARCHAR[],
    scheduler VARCHAR,
    incomplete_of VARCHAR,
    named BOOLEAN,
    @records@
);
CREATE TABLE gaps (
    cluster VARCHAR,
    job_id VARCHAR,
    submit_unix_s DOUBLE,
    node VARCHAR,
    what VARCHAR,
    reason VARCHAR
);
-- Parquet files that are to be made: a day whose revision is not the exported one.
CREATE TABLE days (day DATE, revision BIGINT, exported BIGINT);

COMMENT ON TABLE meta IS 'one row: what this database is, and until when it was collected';
COMMENT ON COLUMN meta.asked_until_unix_s IS 'until when the accounting has answered';
COMMENT ON TABLE jobs IS 'one row per start of a job; key cluster, job_id, submit_unix_s';
COMMENT ON COLUMN jobs.job_id IS 'the raw id';
COMMENT ON COLUMN jobs.task IS 'the id as a person types it';
COMMENT ON COLUMN jobs.application IS 'the tag of that name, else the job''s name';
COMMENT ON COLUMN jobs.state IS 'as in a study''s database';
COMMENT ON COLUMN jobs.elapsed_s IS 'whole seconds, of the accounting';
COMMENT ON COLUMN jobs.cpus IS 'allocated, as memory_bytes and gpus';
COMMENT ON COLUMN jobs.node_type IS 'mixed where nodes differ';
COMMENT ON COLUMN jobs.energy_j IS 'of all nodes, as cpu_s and all bytes';
COMMENT ON COLUMN jobs.memory_used_bytes IS 'the sum of its nodes'' highest';
COMMENT ON COLUMN jobs.sources IS 'object from a quantity to its source: records, admin_comment, accounting';
COMMENT ON COLUMN jobs.missing IS 'object from a quantity to the reason why it is NULL';
COMMENT ON COLUMN jobs.marks IS 'what is odd about its records';
COMMENT ON COLUMN jobs.facts IS 'what the accounting had, in one word; not in Parquet';
COMMENT ON TABLE records IS 'one row per job and node; key that of jobs, and node';
COMMENT ON COLUMN records.sha256 IS 'of the file as it was read';
COMMENT ON COLUMN records.named IS 'processes.named of the record';
COMMENT ON TABLE gaps IS 'one row per thing that should be there and is not';
COMMENT ON COLUMN gaps.what IS
    'record, record_version, incomplete_record, changed, touched, contradiction, impossible, suspended, clock or clock_off';
COMMENT ON TABLE days IS 'one row per day with Parquet files; a revision above the exported one: they are to be written';
