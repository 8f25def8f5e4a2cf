/* steelyard-node record: make or repair the record of a sampler that was killed. */
#include "base/error.h"
#include "base/file.h"
#include "base/json_document.h"
#include "netem/netem.h"
#include "program/commands.h"
#include "program/options.h"
#include "record/record.h"
#include "record/record_files.h"
#include "record/unfinished_records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char help[] =
    "usage: steelyard-node record --samples FILE.csv\n"
    "       steelyard-node record --unfinished RUN_DIR\n"
    "\n"
    "Makes the record beside FILE.csv complete as far as the samples tell: for a job whose "
    "sampler\n"
    "was killed, or whose node went down. A record that is there keeps its job, tags and probe; "
    "one\n"
    "that is complete is left alone. The result says complete: false, and why. --unfinished: the "
    "same\n"
    "for all records of samplers that were killed, with what RUN_DIR has of their conditions.\n";

#define REASON "the sampler was killed before the job's end"

static struct repair {
	char folder[4096], name[300]; /* NODE.START */
	char node[300];
	json_t *record;
	struct sy_labels labels;
	struct sy_columns columns;
	struct sy_sums sums;
	bool cut;	 /* the last line has no newline */
	int64_t skipped; /* lines that could not be understood */
} current;

static int split_path(const char *path, struct repair *repair, struct sy_error *err)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	const char *ending = strrchr(base, '.');
	char *start;

	if (!ending || strcmp(ending, ".csv") != 0 ||
	    (size_t)(ending - base) >= sizeof(repair->name))
		return sy_fail(err, "%s: expected a file NODE.START.csv", path);
	(void)snprintf(repair->folder, sizeof(repair->folder), "%.*s",
		       slash ? (int)(slash - path) : 1, slash ? path : ".");
	if (slash == path)
		(void)snprintf(repair->folder, sizeof(repair->folder), "/");
	(void)snprintf(repair->name, sizeof(repair->name), "%.*s", (int)(ending - base), base);
	(void)snprintf(repair->node, sizeof(repair->node), "%s", repair->name);
	start = strrchr(repair->node, '.');
	if (!start || strspn(start + 1, "0123456789") != strlen(start + 1) || !start[1])
		return sy_fail(err, "%s: expected a file NODE.START.csv, START in whole seconds",
			       path);
	*start = '\0';
	return 0;
}

static json_t *read_start_record(const struct sy_recordfile *file)
{
	char name[320], text[65536];
	cleanup_close int fd = -1, next = -1;
	json_t *record;

	(void)snprintf(name, sizeof(name), "%s.json", file->name);
	fd = openat(file->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		(void)sy_count_shortage(errno);
	record = sy_json_read_fd(fd);
	if (record)
		return record;
	/* Killed before the first one had its name: behind the text comes the room set aside. */
	(void)snprintf(name, sizeof(name), ".%s.json.tmp", file->name);
	next = openat(file->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return next >= 0 && sy_read_fd(next, text, sizeof(text)) > 0 ? json_loads(text, 0, NULL)
								     : NULL;
}

/* Without a record of the start: what the name and the columns show. */
static json_t *make_new(const struct repair *repair, const char *job_id)
{
	static struct sy_node node;
	char samples[320];
	struct sy_sampling sampling = {.job_id = job_id, .node = repair->node, .rate_hz = 0};
	struct sy_head head = {.sampling = &sampling, .node = &node, .samples_file = samples};
	json_t *record;

	(void)snprintf(samples, sizeof(samples), "%s.csv", repair->name);
	sampling.notes = (struct sy_job_notes){json_object(), json_object(), json_object()};
	record = sy_record_new(&head);
	sy_json_put(record, "sampler.rate_hz", json_null(), "the record of the start is lost");
	sy_json_put(record, "job.scheduler", json_null(), "the record of the start is lost");
	json_decref(sampling.notes.job);
	json_decref(sampling.notes.tags);
	json_decref(sampling.notes.conditions);
	return record;
}

/* Line by line, whatever the file's size. */
static int sum_samples(FILE *file, const char *path, struct repair *repair, struct sy_error *err)
{
	cleanup_free char *text = NULL;
	size_t size = 0;
	ssize_t length = getline(&text, &size, file);

	if (length <= 0 || text[length - 1] != '\n')
		return sy_fail(err, "%s: no line of column names", path);
	if (sy_parse_header(text, &repair->labels, &repair->columns, err) < 0)
		return -1;
	while ((length = getline(&text, &size, file)) > 0) {
		struct sy_line line;

		if (text[length - 1] != '\n')
			repair->cut = true;
		else if (sy_parse_line(text, &repair->columns, &line) < 0)
			repair->skipped++;
		else
			sy_sums_add(&repair->sums, &line);
	}
	return 0;
}

static void format_reason(const struct repair *repair, char *text, size_t size)
{
	(void)snprintf(text, size, REASON "%s", repair->cut ? "; the last line was cut short" : "");
	if (repair->skipped) {
		size_t used = strlen(text);

		(void)snprintf(text + used, size - used, "; %lld lines were not understood",
			       (long long)repair->skipped);
	}
}

static void complete_record(struct repair *repair)
{
	json_t *missing = json_object_get(repair->record, "missing");
	const char *path;
	json_t *reason;
	char text[768];

	sy_record_totals(repair->record, &repair->sums);
	json_object_foreach(missing, path, reason)
	{
		if (!strcmp(json_string_value(reason), SY_NOT_YET))
			(void)json_string_set(reason, "the sampler was killed");
	}
	format_reason(repair, text, sizeof(text));
	sy_record_complete(repair->record, text);
}

static bool is_record(const json_t *record)
{
	const char *format = json_string_value(json_object_get(record, "format"));

	return format && !strcmp(format, "steelyard-record") &&
	       json_integer_value(json_object_get(record, "version")) == 1 &&
	       json_is_object(json_object_get(record, "missing"));
}

/* Open the samples, and the record next to them. */
static FILE *open_all(const char *samples, struct sy_recordfile *file, struct sy_error *err)
{
	struct stat info;
	FILE *stream;
	int fd;

	file->dir = open(current.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(file->name, sizeof(file->name), "%s", current.name);
	fd = open(samples, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &info) < 0 || file->dir < 0) {
		(void)sy_fail_errno(err, -sy_count_shortage(errno), "cannot open %s", samples);
		return NULL;
	}
	if (!S_ISREG(info.st_mode)) {
		(void)sy_fail(err, "%s is no regular file", samples);
		return NULL;
	}
	file->has_owner = geteuid() == 0; /* as the samples: the job's user */
	file->uid = info.st_uid;
	file->gid = info.st_gid;
	stream = fdopen(fd, "r");
	if (!stream)
		(void)sy_fail_errno(err, errno, "cannot read %s", samples);
	return stream;
}

static const char *find_job_id(void)
{
	const char *slash = strrchr(current.folder, '/');

	return slash ? slash + 1 : current.folder;
}

/* `run_dir` NULL: the state of network conditions is unknown. */
static int write_record(const struct sy_recordfile *file, const char *run_dir, struct sy_error *err)
{
	struct sy_sampling sampling = {
	    .run_dir = run_dir, .node = current.node, .job_id = find_job_id()};

	complete_record(&current);
	if (run_dir)
		sy_record_recover_conditions(current.record, &sampling);
	return sy_recordfile_write(file, current.record, err);
}

static int run(const char *samples, const char *run_dir, struct sy_error *err)
{
	struct sy_recordfile file = {.dir = -1};
	FILE *stream;
	int result = 0;

	memset(&current, 0, sizeof(current));
	if (split_path(samples, &current, err) < 0)
		return -1;
	stream = open_all(samples, &file, err);
	if (!stream && file.dir >= 0 && !sy_get_shortages()) /* killed before it had samples */
		sy_recordfile_close(&file);
	if (!stream)
		return -1;
	current.record = read_start_record(&file);
	if (!current.record && sy_get_shortages()) { /* it would be lost for good */
		(void)fclose(stream);
		return sy_fail(err, "cannot look for the record beside %s", samples);
	}
	if (!json_is_true(json_object_get(current.record, "complete"))) {
		if (!is_record(current.record)) {
			json_decref(current.record);
			current.record = make_new(&current, find_job_id());
		}
		sy_record_labels(current.record, &current.labels);
		sy_sums_init(&current.sums);
		result = sum_samples(stream, samples, &current, err);
		if (result == 0)
			result = write_record(&file, run_dir, err);
	}
	(void)fclose(stream);
	if (result == 0)
		sy_recordfile_close(&file);
	json_decref(current.record);
	return result;
}

/* The job continues under its conditions, which finishing the record would end. */
static bool must_wait(const char *run_dir, const char *samples)
{
	memset(&current, 0, sizeof(current));
	return split_path(samples, &current, NULL) == 0 &&
	       sy_netem_is_live(run_dir, current.node, find_job_id());
}

/* Records of killed samplers. A record that cannot be finished is reported, and not tried again. */
static int finish_all(const char *run_dir)
{
	char name[512], samples[4096];
	int fd, code = SY_EXIT_DONE;
	struct sy_error err;

	while (sy_unfinished_lock_next(run_dir, name, samples, sizeof(name), &fd)) {
		if (must_wait(run_dir, samples))
			continue; /* held until we end, so that it is not taken again */
		if (run(samples, run_dir, &err) < 0) {
			(void)fprintf(stderr, "steelyard-node record: %s\n", err.text);
			code = SY_EXIT_MISSING;
		}
		sy_unfinished_end(run_dir, name);
		(void)close(fd);
	}
	return code;
}

int sy_cmd_record(int argc, char **argv)
{
	const char *samples = NULL, *run_dir = NULL;
	struct sy_error err;

	for (int i = 1; i < argc; i += 2) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return sy_command_help(help);
		if (i + 1 < argc && !strcmp(argv[i], "--samples"))
			samples = argv[i + 1];
		else if (i + 1 < argc && !strcmp(argv[i], "--unfinished"))
			run_dir = argv[i + 1];
		else
			samples = run_dir = NULL, i = argc;
	}
	if (!samples == !run_dir)
		return sy_command_usage(help);
	if (run_dir)
		return finish_all(run_dir);
	if (run(samples, NULL, &err) < 0) {
		(void)fprintf(stderr, "steelyard-node record: %s\n", err.text);
		return SY_EXIT_MISSING;
	}
	return SY_EXIT_DONE;
}
