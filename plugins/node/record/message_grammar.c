#include "record/message_grammar.h"

#include "base/json_document.h"
#include "base/number.h"
#include "base/samples.h"
#include "counters/parse.h"

#include <ctype.h>
#include <string.h>

/* Fields of `job` that may be set; "exclusive" has a word of its own. */
static const char *const job_fields[] = {
    "scheduler",     "cluster", "job_id", "array_job_id", "array_task_id",
    "restart_count", "user_id", "nodes",  "name",	  "exit_status",
};

/* PID, and up to `most` numbers behind it: how many, or -1. */
static int parse_numbers(const char *text, struct sy_message *message, int most)
{
	int64_t pid;
	const char *rest = sy_number(text, &pid);
	int count = 0;

	if (!rest || pid == 0 || pid > INT32_MAX)
		return -1;
	message->pid = (pid_t)pid;
	for (; rest && *rest == ' ' && count < most; count++)
		rest = sy_number(rest + 1, &message->number[count]);
	return rest && !*rest ? count : -1;
}

static int parse_process(const char *text, struct sy_message *message, struct sy_error *err)
{
	return parse_numbers(text, message, 0) < 0
		   ? sy_fail(err, "'%s': expected one process id", text)
		   : 0;
}

/* A step's daemon reports the page faults of the children that it has reaped, and since when the
 * kernel counts its job. */
static int parse_root(const char *text, struct sy_message *message, struct sy_error *err)
{
	message->number[0] = -1;
	return parse_numbers(text, message, 2) < 0
		   ? sy_fail(err,
			     "'%s': expected a process id, and page faults and nanoseconds or "
			     "nothing",
			     text)
		   : 0;
}

static int parse_done(const char *text, struct sy_message *message, struct sy_error *err)
{
	int count = parse_numbers(text, message, 5);

	message->has_bytes = count == 5;
	return count == 1 || count == 5
		   ? 0
		   : sy_fail(err, "done '%s': expected PID CPU_US [RCHAR WCHAR READ WRITE]", text);
}

static int parse_peak(const char *text, struct sy_message *message, struct sy_error *err)
{
	const char *end = sy_number(text, &message->number[0]);

	return end && !*end && message->number[0] > 0
		   ? 0
		   : sy_fail(err, "peak '%s': expected bytes", text);
}

static int parse_counted(const char *text, struct sy_message *message, struct sy_error *err)
{
	const char *end = sy_number(text, &message->number[0]);

	return end && !*end && message->number[0] >= 0
		   ? 0
		   : sy_fail(err, "counted '%s': expected microseconds of CPU", text);
}

/* A group below the mount points, and nowhere else. */
static int parse_cgroup(const char *text, struct sy_message *message, struct sy_error *err)
{
	size_t length = strlen(text);

	if (*text != '/' || length < 2 || length > 500 || strstr(text, "/../") ||
	    (length >= 3 && !strcmp(text + length - 3, "/..")))
		return sy_fail(err, "cgroup '%s': expected a path as in /proc/PID/cgroup", text);
	message->value = text;
	return 0;
}

static bool is_key(const char *key, size_t length)
{
	if (length == 0 || length >= SY_TAG_KEY_SIZE ||
	    !(isalpha((unsigned char)*key) || *key == '_'))
		return false;
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)key[i]) && !strchr("_.-", key[i]))
			return false;
	return true;
}

static bool is_value(const char *value)
{
	json_t *string = json_string(value); /* NULL: no UTF-8 */
	bool good = string && strlen(value) < SY_TAG_VALUE_SIZE;

	json_decref(string);
	for (; *value && good; value++)
		good = (unsigned char)*value >= ' ' && *value != 0x7f;
	return good;
}

static int parse_pair(const char *text, char separator, struct sy_message *message,
		      struct sy_error *err)
{
	const char *split = strchr(text, separator);
	size_t length = split ? (size_t)(split - text) : 0;

	if (!is_key(text, length))
		return sy_fail(err,
			       "'%s': expected KEY%cVALUE, KEY of at most %d letters, digits, '_', "
			       "'.', '-', beginning with a letter or '_'",
			       text, separator, SY_TAG_KEY_SIZE - 1);
	if (!is_value(split + 1))
		return sy_fail(err,
			       "the value of '%.*s': expected at most %d bytes of UTF-8 text "
			       "without control characters",
			       (int)length, text, SY_TAG_VALUE_SIZE - 1);
	memcpy(message->key, text, length);
	message->key[length] = '\0';
	message->value = split + 1;
	return 0;
}

static int parse_tag(const char *text, struct sy_message *message, struct sy_error *err)
{
	return parse_pair(text, '=', message, err);
}

static int parse_rate(const char *text, struct sy_message *message, struct sy_error *err)
{
	return sy_rate_parse(text, SY_MAX_RATE_HZ, &message->rate_hz, err);
}

static int parse_exclusive(const char *text, struct sy_message *message, struct sy_error *err)
{
	message->exclusive = !strcmp(text, "yes");
	if (!message->exclusive && strcmp(text, "no") != 0)
		return sy_fail(err, "exclusive '%s': expected yes or no", text);
	return 0;
}

static int parse_job(const char *text, struct sy_message *message, struct sy_error *err)
{
	if (parse_pair(text, ' ', message, err) < 0)
		return -1;
	if (!strcmp(message->key, "exclusive")) {
		message->word = SY_WORD_EXCLUSIVE;
		return parse_exclusive(message->value, message, err);
	}
	for (size_t i = 0; i < sizeof(job_fields) / sizeof(job_fields[0]); i++)
		if (!strcmp(job_fields[i], message->key))
			return 0;
	return sy_fail(
	    err,
	    "job field '%s': expected scheduler, cluster, job_id, array_job_id, "
	    "array_task_id, restart_count, user_id, nodes, name, exit_status or exclusive",
	    message->key);
}

/* docs/formats.md part 9: requested, done and refused. */
static int parse_cache(const char *text, struct sy_message *message, struct sy_error *err)
{
	json_t *cache = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	bool good = json_is_string(json_object_get(cache, "requested")) &&
		    json_is_array(json_object_get(cache, "done")) &&
		    json_is_array(json_object_get(cache, "refused")) &&
		    json_object_size(cache) == 3;

	json_decref(cache);
	message->value = text;
	return good ? 0
		    : sy_fail(err,
			      "cache '%.60s': expected {\"requested\": TEXT, \"done\": [..], "
			      "\"refused\": [..]}",
			      text);
}

/* The number of a question, which its answer repeats; none: -1. */
static int parse_question(const char *text, struct sy_message *message, struct sy_error *err)
{
	message->number[0] = -1;
	if (*text && sy_parse_number(text, &message->number[0]) < 0)
		return sy_fail(err, "totals '%s': expected the number of the question", text);
	return 0;
}

static int parse_unmet(const char *text, struct sy_message *message, struct sy_error *err)
{
	static const char *const fields[] = {"cache", "network_conditions"};

	if (parse_pair(text, ' ', message, err) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (!strcmp(fields[i], message->key))
			return 0;
	return sy_fail(err, "unmet '%s': expected cache or network_conditions", message->key);
}

/* Three lists without blanks. */
static int parse_gpus(const char *text, struct sy_message *message, struct sy_error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789,-/";
	const char *at = text;

	message->value = text;
	for (int i = 0; i < 3; i++) {
		size_t length = strspn(at, allowed);

		if (!length || length >= SY_GPUS_SIZE || at[length] != (i < 2 ? ' ' : '\0'))
			return sy_fail(err,
				       "gpus '%.60s': expected LISTED OPEN DENIED, each shorter "
				       "than %d bytes",
				       text, SY_GPUS_SIZE);
		at += length + 1;
	}
	return 0;
}

static const struct {
	const char *word;
	enum sy_word code;
	/* Its arguments; NULL: it has none. */
	int (*parse)(const char *text, struct sy_message *message, struct sy_error *err);
} words[] = {
    {"root", SY_WORD_ROOT, parse_root},
    {"cgroup", SY_WORD_CGROUP, parse_cgroup},
    {"counted", SY_WORD_COUNTED, parse_counted},
    {"tag", SY_WORD_TAG, parse_tag},
    {"rate", SY_WORD_RATE, parse_rate},
    {"exclusive", SY_WORD_EXCLUSIVE, parse_exclusive},
    {"job", SY_WORD_JOB, parse_job},
    {"done", SY_WORD_DONE, parse_done},
    {"peak", SY_WORD_PEAK, parse_peak},
    {"cache", SY_WORD_CACHE, parse_cache},
    {"unmet", SY_WORD_UNMET, parse_unmet},
    {"gpus", SY_WORD_GPUS, parse_gpus},
    {"totals", SY_WORD_TOTALS, parse_question},
    {"leave", SY_WORD_LEAVE, NULL},
    {"lost", SY_WORD_LOST, NULL},
    {"late", SY_WORD_LATE, NULL},
    {"intime", SY_WORD_INTIME, NULL},
    {"session", SY_WORD_SESSION, parse_process},
    {"attach", SY_WORD_ATTACH, parse_process},
    {"end", SY_WORD_END, NULL},
};

int sy_message_parse(const char *text, struct sy_message *message, struct sy_error *err)
{
	size_t length = strcspn(text, " ");

	*message = (struct sy_message){0};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i].word) != length || strncmp(text, words[i].word, length) != 0)
			continue;
		message->word = words[i].code;
		if (!words[i].parse)
			return text[length] ? sy_fail(err, "'%s': expected no arguments", text) : 0;
		if (!text[length] && message->word != SY_WORD_TOTALS)
			return sy_fail(err, "'%s': expected an argument", text);
		return words[i].parse(text + length + (text[length] == ' '), message, err);
	}
	return sy_fail(
	    err,
	    "'%.*s' is none of root, cgroup, counted, tag, rate, exclusive, job, done, "
	    "peak, cache, unmet, gpus, totals, leave, lost, late, intime, session, attach, "
	    "end",
	    (int)(length < 40 ? length : 40), text);
}

static void put_unmet(json_t *conditions, const struct sy_message *message)
{
	json_t *unmet = json_object_get(conditions, "unmet");

	if (!unmet) {
		unmet = json_object();
		(void)json_object_set_new(conditions, "unmet", unmet);
	}
	(void)json_object_set_new(unmet, message->key, sy_json_text(message->value));
}

void sy_message_apply(const struct sy_message *message, const struct sy_job_notes *notes)
{
	if (message->word == SY_WORD_TAG)
		(void)json_object_set_new(notes->tags, message->key, sy_json_text(message->value));
	else if (message->word == SY_WORD_JOB)
		(void)json_object_set_new(notes->job, message->key, sy_json_text(message->value));
	else if (message->word == SY_WORD_EXCLUSIVE)
		(void)json_object_set_new(notes->job, "exclusive",
					  json_boolean(message->exclusive));
	else if (message->word == SY_WORD_CACHE)
		(void)json_object_set_new(notes->conditions, "cache",
					  json_loads(message->value, 0, NULL));
	else if (message->word == SY_WORD_UNMET)
		put_unmet(notes->conditions, message);
	else if (message->word == SY_WORD_GPUS)
		sy_json_add_once(notes->conditions, "gpus", message->value);
}
