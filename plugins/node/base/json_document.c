#include "base/json_document.h"

#include "base/exec.h"
#include "base/file.h"
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_LIMIT (4 << 20)

static atomic_bool lacked_memory;

static void *allocate(size_t size)
{
	void *memory = malloc(size);

	if (!memory) {
		lacked_memory = true;
		(void)sy_count_shortage(ENOMEM);
	}
	return memory;
}

void sy_json_watch_memory(void)
{
	json_set_alloc_funcs(allocate, free);
}

char *sy_json_dump(const json_t *json, size_t flags)
{
	char *text = json ? json_dumps(json, flags) : NULL;

	if (text && !lacked_memory)
		return text;
	free(text);
	errno = ENOMEM;
	return NULL;
}

json_t *sy_json_read_fd(int fd)
{
	cleanup_free char *text = NULL;
	struct stat info;
	ssize_t length;

	if (fd < 0 || fstat(fd, &info) < 0 || info.st_size > FILE_LIMIT)
		return NULL;
	text = allocate((size_t)info.st_size + 1);
	length = text ? sy_read_fd(fd, text, (size_t)info.st_size + 1) : -1;
	return length < 0 ? NULL : json_loadb(text, (size_t)length, 0, NULL);
}

/* Bytes that the UTF-8 sequence at `at` takes, or 0 when it is none (RFC 3629). */
static size_t sequence_length(const unsigned char *at)
{
	static const struct {
		unsigned char low, high, second_low, second_high;
		size_t length;
	} forms[] = {
	    {0x01, 0x7f, 0, 0, 1},	 {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
	    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
	    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (at[0] < forms[i].low || at[0] > forms[i].high)
			continue;
		if (forms[i].length > 1 &&
		    (at[1] < forms[i].second_low || at[1] > forms[i].second_high))
			return 0;
		for (size_t n = 2; n < forms[i].length; n++)
			if ((at[n] & 0xc0) != 0x80)
				return 0;
		return forms[i].length;
	}
	return 0;
}

json_t *sy_json_text(const char *text)
{
	static const char replacement[] = "\xef\xbf\xbd";
	json_t *json = json_string(text);
	cleanup_free char *clean = NULL;
	char *to;

	if (json)
		return json;
	to = clean = malloc(3 * strlen(text) + 1);
	if (!clean)
		return NULL;
	while (*text) {
		size_t length = sequence_length((const unsigned char *)text);

		memcpy(to, length ? text : replacement, length ? length : 3);
		to += length ? length : 3;
		text += length ? length : 1;
	}
	*to = '\0';
	return json_string(clean);
}

/* The child of a container at one step of a path, made when it is not there. */
static json_t *step_into(json_t *at, const char *word)
{
	json_t *inner;

	if (json_is_array(at))
		return json_array_get(at, (size_t)strtoul(word, NULL, 10));
	inner = json_object_get(at, word);
	if (!inner) {
		inner = json_object();
		if (json_object_set_new(at, word, inner) < 0)
			inner = NULL; /* it is gone; what is put into nothing is, too */
	}
	return inner;
}

/* The object that a path's last word goes into; `word` is set to that word. */
static json_t *find_object(json_t *at, const char *path, const char **word)
{
	const char *dot;

	while ((dot = strchr(path, '.'))) {
		char key[256];

		(void)snprintf(key, sizeof(key), "%.*s", (int)(dot - path), path);
		at = step_into(at, key);
		path = dot + 1;
	}
	*word = path;
	return at;
}

void sy_json_put(json_t *top, const char *path, json_t *value, const char *reason)
{
	json_t *missing = step_into(top, "missing");
	const char *word;
	json_t *object = find_object(top, path, &word);

	if (!value)
		value = json_null();
	if (json_is_null(value))
		(void)json_object_set_new(missing, path,
					  sy_json_text(reason ? reason : "not known"));
	else
		(void)json_object_del(missing, path);
	(void)json_object_set_new(object, word, value);
}

const char *sy_json_reason(const json_t *top, const char *path)
{
	return json_string_value(json_object_get(json_object_get(top, "missing"), path));
}

void sy_json_explain(json_t *top, const char *path, const char *reason)
{
	if (*reason && sy_json_reason(top, path))
		(void)json_object_set_new(json_object_get(top, "missing"), path,
					  sy_json_text(reason));
}

void sy_doc_put(struct sy_document *document, const char *path, json_t *value)
{
	const char *word;
	json_t *object = find_object(document->top, path, &word);

	if (json_object_set_new(object, word, value))
		document->failed = true;
}

void sy_doc_put_text(struct sy_document *document, const char *path, const char *text)
{
	sy_doc_put(document, path, sy_json_text(text));
}

void sy_doc_put_int(struct sy_document *document, const char *path, int64_t value)
{
	sy_doc_put(document, path, json_integer(value));
}

__attribute__((format(printf, 3, 0))) static void
put_reason(struct sy_document *document, const char *path, const char *format, va_list args)
{
	char reason[256];

	(void)vsnprintf(reason, sizeof(reason), format, args);
	if (json_object_set_new(document->missing, path, sy_json_text(reason)))
		document->failed = true;
}

void sy_doc_put_reason(struct sy_document *document, const char *path, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put_reason(document, path, format, args);
	va_end(args);
}

void sy_doc_put_null(struct sy_document *document, const char *path, const char *format, ...)
{
	va_list args;

	sy_doc_put(document, path, json_null());
	va_start(args, format);
	put_reason(document, path, format, args);
	va_end(args);
}

void sy_doc_put_line(struct sy_document *document, const char *path, int root, const char *file)
{
	char line[4096];
	ssize_t length = sy_read_line_at(root, file, line, sizeof(line));

	if (length > 0)
		sy_doc_put_text(document, path, line);
	else if (length == 0)
		sy_doc_put_null(document, path, "%s is empty", file);
	else
		sy_doc_put_null(document, path, "%s: %s", file, strerror((int)-length));
}

void sy_doc_put_list(struct sy_document *document, const char *path, int root, const char *file)
{
	char line[1024], *rest = line, *word;
	ssize_t length = sy_read_line_at(root, file, line, sizeof(line));
	json_t *list = json_array();

	while (length > 0 && (word = strsep(&rest, " \t")))
		if (*word && json_array_append_new(list, sy_json_text(word)))
			document->failed = true;
	if (length < 0)
		sy_doc_put_reason(document, path, "%s: %s", file, strerror((int)-length));
	sy_doc_put(document, path, list);
}

void sy_json_add_once(json_t *object, const char *key, const char *text)
{
	json_t *list = json_object_get(object, key), *old;
	size_t i;

	if (!json_is_array(list)) {
		list = json_array();
		(void)json_object_set_new(object, key, list);
	}
	json_array_foreach(list, i, old)
	{
		if (json_is_string(old) && !strcmp(json_string_value(old), text))
			return;
	}
	(void)json_array_append_new(list, sy_json_text(text));
}

void sy_json_note(json_t *object, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	sy_json_add_once(object, "notes", text);
}

struct making {
	json_t *(*make)(const void *context);
	const void *context;
};

static int write_made(const void *context, int out)
{
	const struct making *making = context;
	json_t *made = making->make(making->context);
	char *text = made ? json_dumps(made, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	return text ? sy_write_all(out, text, strlen(text)) : -1;
}

json_t *sy_json_within(int limit_ms, json_t *(*make)(const void *context), const void *context)
{
	const struct making making = {make, context};
	cleanup_free char *text = sy_run_function(limit_ms, write_made, &making, NULL);

	return text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
}
