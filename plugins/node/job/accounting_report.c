#include "job/accounting_report.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "job/comment.h"
#include "job/record_lookup.h"

#define LATE_S	    60	/* the limit for a second report of one end */
#define EARLIER_MAX 100 /* in a state's 8 KB */

/* The value at a dotted path. */
static json_t *find_value(json_t *json, const char *path)
{
	char path_copy[256], *rest = path_copy, *word;

	(void)snprintf(path_copy, sizeof(path_copy), "%s", path);
	while (json && (word = strsep(&rest, ".")))
		json = json_object_get(json, word);
	return json;
}

/* Where the job's cgroup was read to its end, its CPU and memory hold without the processes. */
static void read_incompleteness(json_t *record, struct sy_totals *totals)
{
	const char *of = json_string_value(find_value(record, "incomplete_of"));
	const char *cpu = json_string_value(find_value(record, "cpu.source"));
	const char *memory = json_string_value(find_value(record, "memory.source"));
	bool incomplete = of && strcmp(of, "processes") == 0;
	bool by_cgroup = cpu && sy_is_cgroup(cpu) && totals->known[SY_CPU_UNSEEN_S];

	totals->uncounted = incomplete && !by_cgroup;
	totals->unseen = incomplete && by_cgroup;
	(void)snprintf(totals->memory_source, sizeof(totals->memory_source), "%s",
		       memory ? memory : "");
}

/* A finished record overrules what the sampler answered before. */
static void read_totals(json_t *record, struct sy_totals *totals)
{
	const json_t *gpus = find_value(record, "energy.gpus.of_node"); /* null: not known */

	for (int i = 0; i < SY_TOTALS; i++) {
		const json_t *value = find_value(record, sy_total_facts[i].path);

		totals->value[i] = json_number_value(value);
		totals->known[i] = json_is_number(value) && sy_is_countable(totals->value[i]);
	}
	totals->no_gpus = !json_is_null(gpus) && json_integer_value(gpus) == 0;
	totals->idle = json_is_false(find_value(record, "processes.named"));
	read_incompleteness(record, totals);
}

static void read_tags(json_t *record, struct sy_tags *tags)
{
	json_t *value;
	const char *key;
	char text[SY_TAG_KEY_MAX + SY_TAG_VALUE_MAX + 2];

	json_object_foreach(json_object_get(record, "tags"), key, value)
	{
		(void)snprintf(text, sizeof(text), "%.64s=%.256s", key, json_string_value(value));
		(void)sy_tags_add(tags, text, NULL);
	}
}

static enum sy_exclusive read_exclusive(json_t *record)
{
	const json_t *exclusive = find_value(record, "job.exclusive");

	return json_is_boolean(exclusive) ? json_is_true(exclusive) ? SY_ALONE : SY_SHARED
					  : SY_NOT_SAID;
}

static bool has_number(const json_t *list, const json_t *number)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (json_equal(one, number))
			return true;
	}
	return false;
}

json_t *sy_report_earlier(const char *record_dir, const char *job_id, const char *node,
			  double begin_unix_s)
{
	json_t *all = sy_record_starts(record_dir, job_id, node, (time_t)begin_unix_s);

	if (json_array_size(all) <= EARLIER_MAX)
		return all;
	json_decref(all);
	return json_null();
}

/* START of this start's record: reported by its sampler, else the one that did not exist before.
 * The clock may have been set since, so it need not be the largest. */
static time_t find_own_start(const struct sy_report *report, time_t reported_start)
{
	json_t *all, *start;
	time_t found = reported_start;
	size_t i;

	if (reported_start)
		return reported_start;
	if (!report->earlier)
		return sy_record_newest(report->record_dir, report->job_id, report->node);
	if (!json_is_array(report->earlier))
		return 0;
	all = sy_record_starts(report->record_dir, report->job_id, report->node,
			       (time_t)report->begin_unix_s);
	json_array_foreach(all, i, start)
	{
		if (!has_number(report->earlier, start))
			found = (time_t)json_integer_value(start);
	}
	json_decref(all);
	return found;
}

/* The record of this start of the job on this node, and its text. */
static json_t *read_own_record(const struct sy_report *report, time_t reported_start, char **text)
{
	char folder[SY_RECORD_PATH_SIZE], name[600];
	time_t start = find_own_start(report, reported_start);
	cleanup_close int fd = -1;

	sy_record_folder(folder, report->record_dir, report->job_id, start);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(name, sizeof(name), "%s.%lld.json", report->node, (long long)start);
	*text = fd < 0 || !start ? NULL : sy_read_record(fd, name);
	return *text ? json_loads(*text, 0, NULL) : NULL;
}

/* True when the record has all that this end of the job can report. Where nothing is known of
 * its begin, the end may have been reported a moment ago. */
static bool is_complete(const struct sy_report *report, json_t *record)
{
	const json_t *end = find_value(record, "end_unix_s");

	if (!json_is_number(end) || report->sampled)
		return json_is_number(end);
	return report->earlier ? json_is_true(find_value(record, "complete"))
			       : json_number_value(end) > (double)(time(NULL) - LATE_S);
}

/* The reason why a condition is missing, without the word "refused"; NULL: it was not refused. */
static const char *read_refusal(json_t *record)
{
	static const char *const paths[] = {"missing.network_conditions", "missing.cache"};
	static const char mark[] = "refused: ";

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const char *reason = json_string_value(find_value(record, paths[i]));

		if (reason && strncmp(reason, mark, sizeof(mark) - 1) == 0)
			return reason + sizeof(mark) - 1;
	}
	return NULL;
}

static void put_conditions(json_t *record, struct sy_comment *comment)
{
	const json_t *valid = find_value(record, "network_conditions.valid");

	comment->netem = json_string_value(find_value(record, "network_conditions.requested"));
	comment->netem_valid = json_is_boolean(valid) ? json_is_true(valid) : -1;
	if (!comment->netem) /* `none`, or refused */
		comment->netem = json_string_value(find_value(record, "tags.network"));
	comment->refused = read_refusal(record);
}

char *sy_report_text(const struct sy_report *report)
{
	static struct sy_tags tags;
	struct sy_comment comment = {.tags = &tags, .nodes = -1, .netem_valid = -1};
	struct sy_totals own = {0};
	bool answered = report->sampled && sy_totals_from_json(&own, report->totals);
	cleanup_free char *text = NULL;
	json_t *record = read_own_record(report, own.start, &text);
	char *line;

	tags.count = 0;
	if (is_complete(report, record)) {
		read_totals(record, &own);
		own.exclusive = read_exclusive(record);
		answered = true;
	}
	if (answered) {
		comment.totals = &own;
		read_tags(record, &tags);
		sy_node_kind_from_record(&comment.kind, text ? text : "");
		put_conditions(record, &comment);
	}
	line = sy_comment_text(&comment);
	json_decref(record);
	return line;
}
