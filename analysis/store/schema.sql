-- The database of a study. docs/formats.md part 8 has its tables from the comments here; a column that
-- has the name and meaning of an earlier table's needs none. schema.py replaces @ name @. Names have
-- units; NULL is not known, never 0.
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
    factors JSON,
    scaling JSON,
    session VARCHAR,
    session_number INTEGER,
    session_began_unix_s DOUBLE,
    session_seed BIGINT
);
COMMENT ON TABLE meta IS 'one row: what this database is and when it was collected';
COMMENT ON COLUMN meta.schema_version IS 'of the layout; a program refuses another one';
COMMENT ON COLUMN meta.study IS 'its name';
COMMENT ON COLUMN meta.seed IS 'of the order of runs';
COMMENT ON COLUMN meta.toml_sha256 IS 'of toml';
COMMENT ON COLUMN meta.collected_unix_s IS 'when it was collected';
COMMENT ON COLUMN meta.toml IS 'the study file, to the byte';
COMMENT ON COLUMN meta.steelyard IS 'version of the program that collected';
COMMENT ON COLUMN meta.baseline IS 'object from factor to level; each level of a factor that is not in it ([baseline] within) has its own baseline';
COMMENT ON COLUMN meta.factors IS 'object from factor to its list of levels';
COMMENT ON COLUMN meta.scaling IS 'object: kind (strong or weak), over (list of factors, the product of whose levels is a condition''s scale); NULL: the study has no scaling';
COMMENT ON COLUMN meta.session IS 'name of the session; NULL, as of the columns that follow: the study is not run as sessions';
COMMENT ON COLUMN meta.session_number IS 'its place among the sessions, in the order of submission, from 1';
COMMENT ON COLUMN meta.session_began_unix_s IS 'when it was first submitted';
COMMENT ON COLUMN meta.session_seed IS 'decides the order of its runs: made of seed and session';

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
COMMENT ON COLUMN runs.run_id IS 'as in plan.json';
COMMENT ON COLUMN runs.benchmark IS 'its name';
COMMENT ON COLUMN runs.variant IS 'label of benchmark and parameters';
COMMENT ON COLUMN runs.parameters IS 'object, defaults too';
COMMENT ON COLUMN runs.condition IS 'object from factor to level, of the factors that apply';
COMMENT ON COLUMN runs.condition_label IS 'the condition in one word';
COMMENT ON COLUMN runs.is_baseline IS 'its condition is the baseline of others';
COMMENT ON COLUMN runs.repeat IS 'from 1';
COMMENT ON COLUMN runs.invalid_reason IS 'what did not hold';
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
    tries INTEGER,
    nodes VARCHAR[],
    stamp VARCHAR
);
COMMENT ON TABLE attempts IS 'one row per execution of a run, waiting ones too; key run_id, attempt';
COMMENT ON COLUMN attempts.array_task_id IS 'NULL: no array';
COMMENT ON COLUMN attempts.scheduler IS 'slurm, pbs, none';
COMMENT ON COLUMN attempts.cluster IS 'as the accounting names it';
COMMENT ON COLUMN attempts.array_job_id IS 'NULL: no array';
COMMENT ON COLUMN attempts.restart_count IS '0 at the first start';
COMMENT ON COLUMN attempts.state IS 'as the scheduler has it';
COMMENT ON COLUMN attempts.end_unix_s IS 'as start_unix_s';
COMMENT ON COLUMN attempts.clients IS 'number of them';
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
COMMENT ON COLUMN attempts.tries IS
    'how often the run was begun in it: more than 1 where retries were needed; NULL: not told';
COMMENT ON COLUMN attempts.nodes IS 'names as the scheduler has them';
COMMENT ON COLUMN attempts.stamp IS
    'what it was read from, in one word: the next collect reads nothing of it as long as that is so; NULL: read anew each time';

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
COMMENT ON COLUMN results.metric IS 'name of the figure, as its benchmark describes it';
COMMENT ON COLUMN results.value IS 'NULL: the output has none';
COMMENT ON COLUMN results.unit IS 'of the value';
COMMENT ON COLUMN results.is_primary IS 'a main figure of the benchmark';
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
    @totals@,
    tcp_connections BIGINT,
    rtt_readings BIGINT,
    rtt_floor_s DOUBLE,
    rtt_min_s DOUBLE,
    rtt_median_s DOUBLE,
    rtt_mean_s DOUBLE,
    rtt_sd_s DOUBLE,
    rtt_max_s DOUBLE,
    snd_cwnd_median_segments DOUBLE,
    snd_cwnd_max_segments BIGINT,
    rcv_space_median_bytes DOUBLE,
    rcv_space_max_bytes BIGINT,
    job_retransmitted_segments BIGINT,
    samples BIGINT,
    samples_lost BIGINT,
    missed_deadlines BIGINT,
    sampler_cpu_s DOUBLE,
    record JSON NOT NULL
);
COMMENT ON TABLE records IS 'one row per job and node: fields of its record; key run_id, attempt, node';
COMMENT ON COLUMN records.node IS 'name as the scheduler has it';
@comments_on_totals@
COMMENT ON COLUMN records.record IS 'the complete record as it was read';

CREATE TABLE tags (
    run_id VARCHAR NOT NULL,
    attempt VARCHAR NOT NULL,
    node VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    value VARCHAR NOT NULL
);
COMMENT ON TABLE tags IS
    'one row per tag, of a record or of the run''s own script; key run_id, attempt, node, key';
COMMENT ON COLUMN tags.key IS 'of --tag, or of sy_tag in a job script';
COMMENT ON COLUMN tags.value IS 'text';

CREATE TABLE environment (
    run_id VARCHAR NOT NULL,
    attempt VARCHAR NOT NULL,
    node VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    path VARCHAR NOT NULL,
    sha256 VARCHAR NOT NULL
);
COMMENT ON TABLE environment IS
    'one row per program or library that a run used on a node; key run_id, attempt, node, path, sha256';
COMMENT ON COLUMN environment.path IS 'on the node';
COMMENT ON COLUMN environment.sha256 IS 'of the file';
COMMENT ON COLUMN environment.kind IS 'program or library';

CREATE TABLE spans (
    run_id VARCHAR NOT NULL,
    attempt VARCHAR NOT NULL,
    span VARCHAR NOT NULL,
    iteration INTEGER NOT NULL,
    begin_unix_s DOUBLE NOT NULL,
    end_unix_s DOUBLE NOT NULL
);
COMMENT ON TABLE spans IS
    'one row per phase of a run that its script has named; key run_id, attempt, span, iteration';
COMMENT ON COLUMN spans.begin_unix_s IS 'wall clock';
COMMENT ON COLUMN spans.end_unix_s IS 'wall clock';
COMMENT ON COLUMN spans.span IS
    'idle_before, idle_after (of [job] idle_s), or a word of the benchmark: docs/formats.md part 6';

CREATE TABLE notes (
    run_id VARCHAR NOT NULL,
    attempt VARCHAR NOT NULL,
    client INTEGER NOT NULL,
    kind VARCHAR NOT NULL CHECK (kind IN ('noise', 'tag', 'color', 'bytes', 'unknown')),
    line INTEGER NOT NULL,
    text VARCHAR NOT NULL
);
COMMENT ON TABLE notes IS
    'one row per line of noise in a client''s output, which changes no figure; at most 20 of a kind';
COMMENT ON COLUMN notes.text IS 'the line';
COMMENT ON COLUMN notes.kind IS
    'noise: a known line; tag: of a rank; color; bytes: no UTF-8; unknown: a line outside of the benchmark''s own';
COMMENT ON COLUMN notes.line IS 'counts from 1, in the output without the noise before it';

CREATE TABLE command_usage (
    run_id VARCHAR NOT NULL,
    attempt VARCHAR NOT NULL,
    shells_cpu_s DOUBLE NOT NULL,
    cpu_s DOUBLE NOT NULL,
    rchar_bytes BIGINT,
    wchar_bytes BIGINT,
    read_bytes BIGINT,
    write_bytes BIGINT,
    max_memory_bytes BIGINT,
    largest_process_bytes BIGINT NOT NULL
);
COMMENT ON TABLE command_usage IS
    'one row per attempt whose programs were started by steelyard-time: what they used, all clients together; key run_id, attempt';
COMMENT ON COLUMN command_usage.largest_process_bytes IS 'largest resident set of a single process';
COMMENT ON COLUMN command_usage.shells_cpu_s IS
    'CPU time of the run''s shells and srun, with all that they have waited for, the programs too';
COMMENT ON COLUMN command_usage.max_memory_bytes IS
    'the largest sum of resident sets of a client''s processes, summed over the clients of a node; of several nodes the largest';

CREATE TABLE sample_parts (
    path VARCHAR NOT NULL,
    day VARCHAR NOT NULL,
    samples BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL
);
COMMENT ON TABLE sample_parts IS
    'one row per Parquet file of samples that counts, docs/collect.md; key path';
COMMENT ON COLUMN sample_parts.samples IS 'rows in the file';
COMMENT ON COLUMN sample_parts.size_bytes IS 'of the file';
COMMENT ON COLUMN sample_parts.path IS 'below parquet/samples in the study folder';
COMMENT ON COLUMN sample_parts.day IS 'UTC, YYYY-MM-DD, or unknown';

CREATE TABLE network (
    run_id VARCHAR NOT NULL,
    attempt VARCHAR NOT NULL,
    node VARCHAR NOT NULL,
    requested VARCHAR,
    applied VARCHAR,
    scope VARCHAR,
    qdisc VARCHAR,
    devices VARCHAR[],
    peer VARCHAR,
    rtt_before_s DOUBLE,
    rtt_during_start_s DOUBLE,
    rtt_during_end_s DOUBLE,
    rtt_after_s DOUBLE,
    loss_achieved DOUBLE,
    loss_low DOUBLE,
    loss_high DOUBLE,
    loss_packets BIGINT,
    duplicate_achieved DOUBLE,
    corrupt_achieved DOUBLE,
    reorder_achieved DOUBLE,
    sent_packets BIGINT,
    dropped_packets BIGINT,
    apply_s DOUBLE,
    undo_s DOUBLE,
    valid BOOLEAN,
    invalid_reason VARCHAR,
    undone BOOLEAN
);
COMMENT ON TABLE network IS
    'one row per job and node that had network conditions: fields of its network_conditions; key run_id, attempt, node';

CREATE TABLE accounting (
    submission_id VARCHAR NOT NULL,
    run_id VARCHAR,
    attempt VARCHAR,
    step VARCHAR,
    extra JSON,
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
    Restarts VARCHAR,
    SLUID VARCHAR,
    OriginalSLUID VARCHAR
);
COMMENT ON TABLE accounting IS
    'one row per line of the accounting, jobs and steps, duplicates of requeued jobs too, as text';
COMMENT ON COLUMN accounting.submission_id IS 'the line of submissions.jsonl that made the job';
COMMENT ON COLUMN accounting.attempt IS 'the attempt of the job; NULL, as run_id, in a row of waiting array tasks';
COMMENT ON COLUMN accounting.step IS 'NULL: the job itself';
COMMENT ON COLUMN accounting.extra IS
    'object of the fields that a scheduler has beyond Slurm''s; NULL in Slurm''s own rows';
COMMENT ON COLUMN accounting.Start IS 'seconds since 1970 UTC, or Unknown, None';
COMMENT ON COLUMN accounting.ConsumedEnergyRaw IS
    'as Slurm has it, for the record only: 0 also means no counter, and rows must not be summed';
COMMENT ON COLUMN accounting.Restarts IS 'empty where this release of Slurm does not have it';
COMMENT ON COLUMN accounting.SLUID IS 'of this row, another one at each requeue; since 24.11';
COMMENT ON COLUMN accounting.OriginalSLUID IS 'of this start, also where the job was resized; since 26.05';

CREATE TABLE gaps (
    run_id VARCHAR,
    attempt VARCHAR,
    node VARCHAR,
    kind VARCHAR NOT NULL CHECK (kind IN (
        'accounting', 'job', 'result', 'output', 'figure', 'record', 'incomplete_record', 'record_version',
        'samples', 'cut_samples', 'clock')),
    reason VARCHAR NOT NULL
);
COMMENT ON TABLE gaps IS 'one row per thing that should be there and is not';
COMMENT ON COLUMN gaps.kind IS
    'accounting: no answer; job: unknown to the scheduler; result: no result.json; output: not understood; figure: a study''s own, not found; record: a node without one; clock: set while the job ran; samples: none, lines left out, or thinned; cut_samples: a truncated last line';
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
    @counters@,
    reason VARCHAR
);
COMMENT ON TABLE sources IS
    'one row per file of samples that was read, so that the next collect reads only new ones; key path';
COMMENT ON COLUMN sources.modified_unix_ns IS 'of the file, as size_bytes';
COMMENT ON COLUMN sources.path IS 'inside the study folder';
COMMENT ON COLUMN sources.samples IS
    'rows of samples read from it; behind it totals at the last sample, NULL: in no sample';
COMMENT ON COLUMN sources.reason IS 'why lines of it were left out; NULL: none were';

CREATE TABLE checks (
    run_id VARCHAR NOT NULL,
    attempt VARCHAR NOT NULL,
    node VARCHAR,
    quantity VARCHAR NOT NULL,
    unit VARCHAR NOT NULL,
    source_a VARCHAR NOT NULL CHECK (source_a IN ('samples', 'records')),
    value_a DOUBLE NOT NULL,
    source_b VARCHAR NOT NULL CHECK (source_b IN ('records', 'scheduler')),
    value_b DOUBLE NOT NULL,
    rule VARCHAR NOT NULL CHECK (rule IN ('equal', 'not more', 'not less')),
    bound DOUBLE NOT NULL,
    agrees BOOLEAN NOT NULL
);
COMMENT ON TABLE checks IS
    'one row per quantity that two sources have of an attempt: both values, compared';
COMMENT ON COLUMN checks.quantity IS 'name of a total';
COMMENT ON COLUMN checks.source_a IS 'samples, records';
COMMENT ON COLUMN checks.value_a IS 'of source_a, in unit';
COMMENT ON COLUMN checks.source_b IS 'records, scheduler';
COMMENT ON COLUMN checks.value_b IS 'of source_b, in unit';
COMMENT ON COLUMN checks.agrees IS 'value_b is within the bound';
COMMENT ON COLUMN checks.node IS 'NULL: sums over all nodes of the attempt';
COMMENT ON COLUMN checks.rule IS
    'equal: value_b may differ by bound; not more: it may be larger by bound, smaller by any amount; not less: smaller by bound, larger by any amount';
COMMENT ON COLUMN checks.bound IS 'in the quantity''s unit; its reasons: docs/collect.md';
