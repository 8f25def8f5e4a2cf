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
