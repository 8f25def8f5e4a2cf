#include "record/put.h"

#include "base/document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void sy_record_put(json_t *record, const char *path, json_t *value, const char *why)
{
	json_t *at = record, *missing = step_into(record, "missing");
	char words[256], *rest = words, *word;

	if (!value)
		value = json_null();
	if (json_is_null(value))
		(void)json_object_set_new(missing, path, sy_json_text(why ? why : "not known"));
	else
		(void)json_object_del(missing, path);
	(void)snprintf(words, sizeof(words), "%s", path);
	while ((word = strsep(&rest, ".")) && rest)
		at = step_into(at, word);
	(void)json_object_set_new(at, word, value);
}
