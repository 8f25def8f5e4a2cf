/* Values of the probe's document: entries of its lists, lines of the kernel's files. */
#ifndef STEELYARD_PROBE_DOCUMENT_VALUES_H
#define STEELYARD_PROBE_DOCUMENT_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "base/json_document.h"

/* A value of a list's entry, or null with its reason at "LIST.INDEX.KEY". */
void sy_probe_set(struct sy_document *document, json_t *entry, const char *list, size_t index,
		  const char *key, json_t *value, const char *reason);

json_t *sy_probe_text(const char *text);

json_t *sy_probe_int(int64_t value);

void sy_probe_append(struct sy_document *document, json_t *list, json_t *entry);

/* The value of the first line that begins with `key`, white space, ":"; or NULL. */
char *sy_probe_find_value(char *text, const char *key, char *buffer, size_t size);

#endif
