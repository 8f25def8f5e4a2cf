-- The database of a cluster's jobs (docs/formats.md part 14). A job is one start of it: cluster,
-- job_id and submit_unix_s, for Slurm submits a requeued job anew.
CREATE TABLE meta (
    schema_version INTEGER,
    database_id VARCHAR,
    cluster VARCHAR,
    steelyard VARCHAR,
    collected_unix_s DOUBLE,
    queried_until_unix_s DOUBLE
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
    cpus_requested INTEGER,
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
    kind VARCHAR,
    reason VARCHAR
);
-- Parquet files that are to be made: a day whose revision is not the exported one.
CREATE TABLE days (day DATE, revision BIGINT, exported BIGINT);

COMMENT ON TABLE meta IS 'one row: what this database is, and until when it was collected';
COMMENT ON COLUMN meta.schema_version IS 'of the layout; a program refuses another one';
COMMENT ON COLUMN meta.database_id IS 'random, made with the database';
COMMENT ON COLUMN meta.cluster IS 'name in the accounting; NULL: no job yet';
COMMENT ON COLUMN meta.steelyard IS 'version of the program that made it';
COMMENT ON COLUMN meta.collected_unix_s IS 'when it was collected last';
COMMENT ON COLUMN meta.queried_until_unix_s IS 'until when the accounting has answered';
COMMENT ON TABLE jobs IS 'one row per start of a job; key cluster, job_id, submit_unix_s';
COMMENT ON COLUMN jobs.write_bytes IS 'of all nodes';
COMMENT ON COLUMN jobs.read_bytes IS 'of all nodes';
COMMENT ON COLUMN jobs.wchar_bytes IS 'of all nodes';
COMMENT ON COLUMN jobs.rchar_bytes IS 'of all nodes';
COMMENT ON COLUMN jobs.cpu_s IS 'of all nodes';
COMMENT ON COLUMN jobs.partition IS 'as in the accounting';
COMMENT ON COLUMN jobs.submit_unix_s IS 'of this start';
COMMENT ON COLUMN jobs.restarts IS 'starts before this one';
COMMENT ON COLUMN jobs.name IS 'of the job';
COMMENT ON COLUMN jobs."user" IS 'its owner';
COMMENT ON COLUMN jobs.account IS 'as in the accounting';
COMMENT ON COLUMN jobs.reason IS 'why it is not completed, one sentence';
COMMENT ON COLUMN jobs.exit_code IS '128 + signal when killed';
COMMENT ON COLUMN jobs.start_unix_s IS 'NULL: it did not start';
COMMENT ON COLUMN jobs.end_unix_s IS 'NULL: it has not ended';
COMMENT ON COLUMN jobs.nodes IS 'names as the scheduler has them';
COMMENT ON COLUMN jobs.cpus_requested IS 'NULL: not known';
COMMENT ON COLUMN jobs.memory_bytes IS 'allocated';
COMMENT ON COLUMN jobs.gpus IS 'allocated';
COMMENT ON COLUMN jobs.time_limit_s IS 'NULL: none, or not known';
COMMENT ON COLUMN jobs.tags IS 'object from key to value, of all nodes';
COMMENT ON COLUMN jobs.whole_records IS 'nodes with a complete record';
COMMENT ON COLUMN jobs.is_over IS 'it has ended';
COMMENT ON COLUMN jobs.is_settled IS 'nothing of it will change';
COMMENT ON COLUMN jobs.job_id IS 'the raw id';
COMMENT ON COLUMN jobs.task IS 'the id as a person types it';
COMMENT ON COLUMN jobs.application IS 'the tag of that name, else the job''s name';
COMMENT ON COLUMN jobs.state IS 'as in a study''s database';
COMMENT ON COLUMN jobs.elapsed_s IS 'whole seconds, of the accounting';
COMMENT ON COLUMN jobs.cpus IS 'allocated';
COMMENT ON COLUMN jobs.node_type IS 'mixed where nodes differ';
COMMENT ON COLUMN jobs.energy_j IS 'of all nodes';
COMMENT ON COLUMN jobs.memory_used_bytes IS 'the sum of its nodes'' highest';
COMMENT ON COLUMN jobs.sources IS 'object from a quantity to its source: records, admin_comment, accounting';
COMMENT ON COLUMN jobs.missing IS 'object from a quantity to the reason why it is NULL';
COMMENT ON COLUMN jobs.marks IS 'what is odd about its records';
COMMENT ON COLUMN jobs.facts IS 'what the accounting had, in one word; not in Parquet';
COMMENT ON TABLE records IS 'one row per job and node: fields of its record; key that of jobs, and node';
COMMENT ON COLUMN records.node IS 'name as the scheduler has it';
COMMENT ON COLUMN records.file IS 'path of the record';
COMMENT ON COLUMN records.marks IS 'what is odd about it';
COMMENT ON COLUMN records.scheduler IS 'job.scheduler of the record';
COMMENT ON COLUMN records.incomplete_of IS 'of the record';
COMMENT ON COLUMN records.sha256 IS 'of the file as it was read';
COMMENT ON COLUMN records.named IS 'processes.named of the record';
COMMENT ON TABLE gaps IS 'one row per thing that should be there and is not';
COMMENT ON COLUMN gaps.reason IS 'one sentence: what was expected, what was found';
COMMENT ON COLUMN gaps.kind IS
    'record, record_version, incomplete_record, changed, touched, contradiction, impossible, suspended, clock or clock_off';
COMMENT ON TABLE days IS 'one row per day with Parquet files; a revision above the exported one: they are to be written';
COMMENT ON COLUMN days.day IS 'UTC, on which jobs ended';
COMMENT ON COLUMN days.revision IS 'changes with the jobs of the day';
COMMENT ON COLUMN days.exported IS 'the revision that its Parquet files have';
