#include "job/comment.h"

#include "base/json_document.h"

#include <ctype.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A double represents each whole number up to 2^53, which is 9 PB. */
bool sy_is_countable(double value)
{
	return value >= 0 && value <= 9007199254740992.0;
}

bool sy_is_cgroup(const char *source)
{
	return strcmp(source, "cgroup1") == 0 || strcmp(source, "cgroup2") == 0;
}

static enum sy_exclusive read_exclusive(const json_t *value)
{
	if (!json_is_integer(value))
		return SY_NOT_SAID;
	return json_integer_value(value) == 1 ? SY_ALONE : SY_SHARED;
}

static void copy_text(char *to, size_t size, const json_t *value)
{
	(void)snprintf(to, size, "%s", json_is_string(value) ? json_string_value(value) : "");
}

bool sy_totals_from_json(struct sy_totals *totals, const char *text)
{
	json_t *document = json_loads(text, 0, NULL);
	bool is_object = json_is_object(document);

	*totals = (struct sy_totals){0};
	for (int i = 0; is_object && i < SY_TOTALS; i++) {
		const json_t *value = json_object_get(document, sy_total_facts[i].name);

		totals->value[i] = json_number_value(value);
		totals->known[i] = json_is_number(value) && sy_is_countable(totals->value[i]);
	}
	totals->no_gpus = !json_object_get(document, sy_total_facts[SY_GPU_ENERGY_J].name);
	totals->exclusive = read_exclusive(json_object_get(document, "exclusive"));
	totals->other_networks = json_object_get(document, "other_networks") != NULL;
	totals->uncounted = json_object_get(document, "uncounted") != NULL;
	totals->unseen = json_object_get(document, "unseen") != NULL;
	copy_text(totals->memory_source, sizeof(totals->memory_source),
		  json_object_get(document, "memory_source"));
	totals->start = (time_t)json_integer_value(json_object_get(document, "start"));
	json_decref(document);
	return is_object;
}

static json_t *text_or_null(const char *text)
{
	return *text ? json_string(text) : json_null();
}

static bool is_of_processes(enum sy_total which)
{
	enum sy_total_of whose = sy_total_facts[which].whose;

	return whose != SY_OF_NODE && whose != SY_OF_SAMPLER;
}

/* The cgroup has all of the job's processes, also those that nobody has seen. */
static bool is_of_cgroup(const struct sy_totals *totals, enum sy_total which)
{
	return which == SY_CPU_S || which == SY_CPU_UNSEEN_S ||
	       (which == SY_MAX_MEMORY_BYTES && sy_is_cgroup(totals->memory_source));
}

/* The energy of the job's devices does not depend on which processes are the job's. */
static bool is_uncounted(const struct sy_totals *totals, enum sy_total which)
{
	return is_of_processes(which) && which != SY_GPU_ENERGY_J &&
	       (totals->uncounted || (totals->unseen && !is_of_cgroup(totals, which)));
}

/* No step of the job came to the node: what processes use is not the job's. */
static bool is_of_nobody(const struct sy_totals *totals, enum sy_total which)
{
	return totals->idle && is_of_processes(which);
}

/* A value of the whole node belongs to the job only where the job was alone there. */
static bool is_reported(const struct sy_totals *totals, enum sy_total which)
{
	return totals && totals->known[which] && !is_of_nobody(totals, which) &&
	       !is_uncounted(totals, which) &&
	       (sy_total_facts[which].whose != SY_OF_NODE || totals->exclusive == SY_ALONE);
}

/* A node without GPUs has no GPU energy to report. */
static bool is_listed(const struct sy_totals *totals, enum sy_total which)
{
	return sy_is_in_comment(which) && (which != SY_GPU_ENERGY_J || !totals || !totals->no_gpus);
}

static json_t *total_value(const struct sy_totals *totals, enum sy_total which)
{
	double value;

	if (!is_reported(totals, which))
		return json_null();
	value = totals->value[which];
	return sy_is_micro(sy_total_facts[which].unit) ? json_real(value)
						       : json_integer((json_int_t)value);
}

static json_t *find_reason(const struct sy_comment *comment, enum sy_total which)
{
	const struct sy_totals *totals = comment->totals;

	if (!totals)
		return json_string("the sampler did not answer");
	if (is_of_nobody(totals, which))
		return json_string("no step of the job was on any node");
	if (is_uncounted(totals, which))
		return json_string(totals->uncounted
				       ? "not all of the job's processes were counted"
				       : "not all processes were seen (cpu_unseen_s)");
	if (totals->known[which])
		return json_string(totals->exclusive == SY_SHARED
				       ? "of the whole node, which the job shared"
				       : "of the whole node; not known whether the job was alone");
	if (which == SY_CPU_UNSEEN_S)
		return json_string("no cgroup: none counts the CPU of all processes");
	if (comment->kind.reason[which][0])
		return json_string(comment->kind.reason[which]);
	return json_string("not known on 1 of 1 nodes");
}

static json_t *collect_reasons(const struct sy_comment *comment)
{
	json_t *missing = json_object();

	for (int i = 0; i < SY_TOTALS; i++) {
		enum sy_total which = (enum sy_total)i;

		if (is_listed(comment->totals, which) && !is_reported(comment->totals, which))
			(void)json_object_set_new(missing, sy_total_facts[i].name,
						  find_reason(comment, which));
	}
	return missing;
}

/* `energy_scope`, where `energy.energy_j` is reported. */
static void put_node_scopes(json_t *object, const struct sy_totals *totals)
{
	for (int i = 0; i < SY_TOTALS; i++) {
		const struct sy_total_fact *fact = &sy_total_facts[i];
		char name[64];

		if (fact->whose != SY_OF_NODE || !sy_is_in_comment((enum sy_total)i) ||
		    !is_reported(totals, (enum sy_total)i))
			continue;
		(void)snprintf(name, sizeof(name), "%.*s_scope", (int)strcspn(fact->path, "."),
			       fact->path);
		(void)json_object_set_new(object, name, json_string("node"));
	}
}

/* Beside the totals: whose they are, and why some are null. */
static void put_scope(json_t *object, const struct sy_comment *comment)
{
	const struct sy_totals *totals = comment->totals;
	enum sy_exclusive exclusive = totals ? totals->exclusive : SY_NOT_SAID;
	json_t *missing;

	(void)json_object_set_new(object, "exclusive",
				  exclusive == SY_NOT_SAID ? json_null()
							   : json_boolean(exclusive == SY_ALONE));
	put_node_scopes(object, totals);
	missing = collect_reasons(comment);
	if (json_object_size(missing))
		(void)json_object_set(object, "missing", missing);
	json_decref(missing);
}

static json_t *first_tags(const struct sy_tags *tags, size_t count)
{
	json_t *object = json_object();

	for (size_t i = 0; i < count; i++) {
		const char *equals = strchr(tags->items[i], '=');
		char key[SY_TAG_KEY_MAX + 1];

		(void)snprintf(key, sizeof(key), "%.*s", (int)(equals - tags->items[i]),
			       tags->items[i]);
		(void)json_object_set_new(object, key, json_string(equals + 1));
	}
	return object;
}

static json_t *make_document(const struct sy_comment *comment, size_t tags)
{
	json_t *object = json_object();
	long measured = comment->totals ? 1 : 0;

	(void)json_object_set_new(object, SY_COMMENT_KEY, json_integer(1));
	(void)json_object_set_new(object, "node_type", text_or_null(comment->kind.node_type));
	(void)json_object_set_new(object, "vm", text_or_null(comment->kind.vm));
	(void)json_object_set_new(object, "container", text_or_null(comment->kind.container));
	(void)json_object_set_new(object, "kernel", text_or_null(comment->kind.kernel));
	(void)json_object_set_new(object, "tags", first_tags(comment->tags, tags));
	if (tags < comment->tags->count)
		(void)json_object_set_new(object, "tags_left_out",
					  json_integer((json_int_t)(comment->tags->count - tags)));
	(void)json_object_set_new(object, "nodes",
				  comment->nodes < 0 ? json_null() : json_integer(comment->nodes));
	(void)json_object_set_new(object, "nodes_measured", json_integer(measured));
	if (measured < comment->nodes)
		(void)json_object_set_new(object, "partial", json_true());
	if (comment->totals && comment->totals->idle)
		(void)json_object_set_new(object, "nodes_idle", json_integer(1));
	if (comment->so_far)
		(void)json_object_set_new(object, "so_far", json_true());
	for (int i = 0; i < SY_TOTALS; i++)
		if (is_listed(comment->totals, (enum sy_total)i))
			(void)json_object_set_new(object, sy_total_facts[i].name,
						  total_value(comment->totals, (enum sy_total)i));
	if (is_reported(comment->totals, SY_MAX_MEMORY_BYTES) && *comment->totals->memory_source)
		(void)json_object_set_new(object, "memory_source",
					  json_string(comment->totals->memory_source));
	put_scope(object, comment);
	if (comment->netem) {
		(void)json_object_set_new(object, "netem", json_string(comment->netem));
		(void)json_object_set_new(
		    object, "netem_valid",
		    comment->netem_valid < 0 ? json_null() : json_boolean(comment->netem_valid));
	}
	if (comment->refused)
		(void)json_object_set_new(object, "refused", json_string(comment->refused));
	return object;
}

/* {name: reason} as {reason: [names]}, since several values share most reasons. Each reason is
 * cut at its first clause; the record has the full text. */
static json_t *group_by_reason(json_t *missing)
{
	json_t *found = json_object(), *reason;
	const char *name;

	json_object_foreach(missing, name, reason)
	{
		const char *text = json_string_value(reason);
		char clause[SY_REASON_SIZE];

		(void)snprintf(clause, sizeof(clause), "%.*s", (int)strcspn(text, ":;,"), text);
		sy_json_add_once(found, clause, name);
	}
	return found;
}

/* Fields that a short comment leaves out (docs/formats.md, part 5). An unknown layer of a known
 * node stays as null, since an absent one means that there is none. */
static bool is_implied(const char *name, const json_t *value, const json_t *object)
{
	bool is_layer = strcmp(name, "vm") == 0 || strcmp(name, "container") == 0;

	if (is_layer && json_is_string(json_object_get(object, "node_type")))
		return json_is_string(value) && strcmp(json_string_value(value), "none") == 0;
	if (strcmp(name, "nodes_measured") == 0)
		return json_equal(value, json_object_get(object, "nodes"));
	return json_is_null(value) || strcmp(name, SY_COMMENT_KEY) == 0 || strstr(name, "_scope") ||
	       (json_is_object(value) && !json_object_size(value));
}

static json_t *shorten(json_t *object)
{
	json_t *result = json_object(), *value;
	const char *name;

	json_object_foreach(object, name, value)
	{
		if (strcmp(name, "missing") == 0)
			(void)json_object_set_new(result, name, group_by_reason(value));
		else if (!is_implied(name, value, object))
			(void)json_object_set(result, name, value);
	}
	json_decref(object);
	return result;
}

static char *format_with_tags(const struct sy_comment *comment, size_t tags, bool is_short)
{
	json_t *object = make_document(comment, tags);
	char *text;

	if (is_short)
		object = shorten(object);
	/* Nine digits: microseconds in a job of 15 minutes, and no 0.30000000000000004. */
	text = sy_json_dump(object, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
	json_decref(object);
	return text;
}

static char *format_fitting(const struct sy_comment *comment, bool is_short)
{
	size_t tags = comment->tags->count;
	char *text = format_with_tags(comment, tags, is_short);

	while (text && strlen(text) > SY_COMMENT_MAX && tags > 0) {
		free(text);
		text = format_with_tags(comment, --tags, is_short);
	}
	return text;
}

char *sy_comment_text(const struct sy_comment *comment)
{
	return format_fitting(comment, false);
}

char *sy_comment_short(const struct sy_comment *comment)
{
	return format_fitting(comment, true);
}

/* A reason of the record's start that it was not over yet is none. */
static void copy_reasons(struct sy_node_kind *kind, const json_t *missing)
{
	for (int i = 0; i < SY_TOTALS; i++) {
		const json_t *reason = json_object_get(missing, sy_total_facts[i].path);
		bool is_none =
		    !json_is_string(reason) || !strcmp(json_string_value(reason), SY_NOT_YET);

		if (is_none && i == SY_GPU_ENERGY_J) /* known before any reading */
			reason = json_object_get(missing, "energy.gpus.of_job");
		if (json_is_string(reason) && strcmp(json_string_value(reason), SY_NOT_YET) != 0)
			copy_text(kind->reason[i], sizeof(kind->reason[i]), reason);
	}
}

void sy_node_kind_from_record(struct sy_node_kind *kind, const char *text)
{
	json_t *record = json_loads(text, 0, NULL);
	const json_t *probe = json_object_get(record, "probe");
	const json_t *layers = json_object_get(probe, "virtualization");
	const json_t *kernel = json_object_get(probe, "kernel");

	*kind = (struct sy_node_kind){0};
	copy_text(kind->node_type, sizeof(kind->node_type), json_object_get(probe, "node_type"));
	copy_text(kind->vm, sizeof(kind->vm),
		  json_object_get(json_object_get(layers, "vm"), "name"));
	copy_text(kind->container, sizeof(kind->container),
		  json_object_get(json_object_get(layers, "container"), "name"));
	copy_text(kind->kernel, sizeof(kind->kernel), json_object_get(kernel, "release"));
	copy_reasons(kind, json_object_get(record, "missing"));
	json_decref(record);
}

/* The end of a member of a valid object: its comma, or the brace after the last member. */
static const char *find_member_end(const char *at)
{
	bool quoted = false;

	for (int depth = 0; *at; at++) {
		if (quoted) {
			quoted = *at != '"';
			at += *at == '\\' && at[1];
		} else if (*at == '"') {
			quoted = true;
		} else if (depth == 0 && (*at == ',' || *at == '}')) {
			break;
		} else {
			depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
		}
	}
	return at;
}

/* By a name of ours, which is of a-z and _, however it is written: "steely\u0061rd" is one, too. */
static bool is_member_named(const char *member, const char *name)
{
	if (*member++ != '"')
		return false;
	for (; *name; name++) {
		char hex[5] = {0};

		if (strncmp(member, "\\u", 2) != 0) {
			if (*member++ != *name)
				return false;
			continue;
		}
		memcpy(hex, member + 2, 4);
		if (strtol(hex, NULL, 16) != *name)
			return false;
		member += 6;
	}
	return *member == '"';
}

/* The members of other programs as they are written, each followed by a comma. */
static char *copy_other_members(const char *present)
{
	char *other_members = malloc(strlen(present) + 2), *to = other_members;
	const char *at = strchr(present, '{') + 1, *end;

	for (; other_members && *at; at = *end == ',' ? end + 1 : "") {
		end = find_member_end(at);
		while (isspace((unsigned char)*at))
			at++;
		if (at == end || is_member_named(at, SY_COMMENT_KEY))
			continue;
		to = mempcpy(to, at, (size_t)(end - at));
		*to++ = ',';
	}
	if (other_members)
		*to = '\0';
	return other_members;
}

static bool is_blank(const char *text)
{
	return !text || text[strspn(text, " \t\r\n")] == '\0';
}

static char *join_members(const char *other_members, const char *own)
{
	char *text = NULL;

	if (asprintf(&text, "{%s\"" SY_COMMENT_KEY "\":%s}", other_members, own) < 0)
		return NULL;
	return text;
}

char *sy_comment_merge(const char *present, const char *own, const char **reason)
{
	json_t *document = NULL;
	char *other_members, *text;

	*reason = "no memory";
	if (is_blank(present))
		return join_members("", own);
	document = json_loads(present, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(document)) {
		json_decref(document);
		*reason = "there is text of somebody else that is no JSON object";
		return NULL;
	}
	other_members = copy_other_members(present);
	text = other_members ? join_members(other_members, own) : NULL;
	free(other_members);
	json_decref(document);
	if (text && strlen(text) > SY_ADMIN_COMMENT_MAX) {
		*reason = "what others wrote leaves no room";
		free(text);
		return NULL;
	}
	return text;
}

static double read_elapsed_s(const json_t *own)
{
	return json_number_value(json_object_get(own, sy_total_facts[SY_ELAPSED_S].name));
}

bool sy_comment_is_later(const char *present, const char *own)
{
	json_t *document = present ? json_loads(present, 0, NULL) : NULL;
	json_t *ours = json_loads(own, 0, NULL);
	bool is_later =
	    read_elapsed_s(json_object_get(document, SY_COMMENT_KEY)) > read_elapsed_s(ours);

	json_decref(document);
	json_decref(ours);
	return is_later;
}
