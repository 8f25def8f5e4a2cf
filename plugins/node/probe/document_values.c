#include "probe/document_values.h"

#include <stdio.h>
#include <string.h>

void sy_probe_set(struct sy_document *document, json_t *entry, const char *list, size_t index,
		  const char *key, json_t *value, const char *reason)
{
	char path[96];

	if (!value) {
		(void)snprintf(path, sizeof(path), "%s.%zu.%s", list, index, key);
		sy_doc_put_reason(document, path, "%s", reason);
		value = json_null();
	}
	if (json_object_set_new(entry, key, value))
		document->failed = true;
}

json_t *sy_probe_text(const char *text)
{
	return *text ? sy_json_text(text) : NULL;
}

json_t *sy_probe_int(int64_t value)
{
	return value >= 0 ? json_integer(value) : NULL;
}

void sy_probe_append(struct sy_document *document, json_t *list, json_t *entry)
{
	if (json_array_append_new(list, entry))
		document->failed = true;
}

char *sy_probe_find_value(char *text, const char *key, char *buffer, size_t size)
{
	size_t length = strlen(key);

	for (char *line = text; line; line = strchr(line, '\n')) {
		const char *colon;

		line += *line == '\n';
		colon = line + length + strspn(*line ? line + length : "", " \t");
		if (strncmp(line, key, length) != 0 || *colon != ':')
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		(void)snprintf(buffer, size, "%.*s", (int)strcspn(colon, "\n"), colon);
		return *buffer ? buffer : NULL;
	}
	return NULL;
}
