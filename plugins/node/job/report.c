#include "job/report.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "job/comment.h"
#include "job/run_dir.h"
#include "job/totals_files.h"

#define LATE_S 60 /* told twice of one end: no later than that */

/* The value at a dotted path. */
static json_t *at(json_t *json, const char *path)
{
	char words[256], *rest = words, *word;

	(void)snprintf(words, sizeof(words), "%s", path);
	while (json && (word = strsep(&rest, ".")))
		json = json_object_get(json, word);
	return json;
}

/* What a finished record tells is the last word. */
static void totals_of(json_t *record, struct sy_totals *totals)
{
	for (int i = 0; i < SY_TOTALS; i++) {
		const json_t *value = at(record, sy_total_facts[i].path);

		totals->known[i] = json_is_number(value);
		totals->value[i] = json_number_value(value);
	}
	totals->idle = json_is_false(at(record, "processes.named"));
}

static void tags_of(json_t *record, struct sy_tags *tags)
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

static enum sy_exclusive exclusive_of(json_t *record)
{
	const json_t *exclusive = at(record, "job.exclusive");

	return json_is_boolean(exclusive) ? json_is_true(exclusive) ? SY_ALONE : SY_SHARED
					  : SY_NOT_SAID;
}

/* The newest record of this node, and its text. */
static json_t *newest(const struct sy_report *report, char **text)
{
	char folder[2 * SY_PATH_SIZE], name[600];
	cleanup_close int fd = -1;
	time_t start;

	(void)snprintf(folder, sizeof(folder), "%s/%s", report->record_dir, report->job_id);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	start = sy_newest_start(folder, report->node, ".json");
	(void)snprintf(name, sizeof(name), "%s.%lld.json", report->node, (long long)start);
	*text = fd < 0 || !start ? NULL : sy_read_record(fd, name);
	return *text ? json_loads(*text, 0, NULL) : NULL;
}

/* One of this end: an earlier start of the job left another, perhaps just now. */
static bool is_recent(const struct sy_report *report, json_t *record)
{
	const json_t *end = at(record, "end_unix_s");

	return json_is_number(end) && json_number_value(end) > (double)(time(NULL) - LATE_S) &&
	       json_number_value(end) > report->begin_unix_s;
}

static void put_conditions(json_t *record, struct sy_comment *comment)
{
	const json_t *valid = at(record, "network_conditions.valid");

	comment->netem = json_string_value(at(record, "network_conditions.requested"));
	comment->netem_valid = json_is_boolean(valid) ? json_is_true(valid) : -1;
	if (!comment->netem) /* `none`, or refused */
		comment->netem = json_string_value(at(record, "tags.network"));
}

static void put_totals(const struct sy_report *report, json_t *record, struct sy_job_totals *job)
{
	struct sy_totals own = {{0}, {0}, false, SY_NOT_SAID};
	bool recent = is_recent(report, record);

	job->silent = !recent && !(report->sampled && sy_totals_from_json(&own, report->totals));
	if (job->silent)
		return;
	if (recent)
		totals_of(record, &own);
	own.exclusive = exclusive_of(record);
	sy_job_totals_add(job, &own);
}

char *sy_report_text(const struct sy_report *report)
{
	static struct sy_tags tags;
	struct sy_job_totals totals = {0};
	struct sy_comment comment = {
	    .tags = &tags, .nodes = -1, .netem_valid = -1, .totals = &totals};
	cleanup_free char *text = NULL;
	json_t *record = newest(report, &text);
	char *line;

	tags.count = 0;
	put_totals(report, record, &totals);
	if (!totals.silent) {
		tags_of(record, &tags);
		sy_node_kind_from_record(&comment.kind, text ? text : "");
		put_conditions(record, &comment);
	}
	line = sy_comment_text(&comment);
	json_decref(record);
	return line;
}
