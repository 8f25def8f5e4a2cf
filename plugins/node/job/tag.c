#include "job/tag.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SEPARATOR '\x1f' /* ASCII "unit separator": not printable, so in no tag */

/* Not <ctype.h>: what is a letter must not depend on the user's locale. */
static bool is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_key_char(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

static size_t key_length(const char *text)
{
	size_t length = 0;

	if (!is_letter(text[0]))
		return 0;
	while (is_key_char(text[length]))
		length++;
	return length;
}

static int faulty(struct sy_error *err, const char *found)
{
	return sy_fail(err,
		       "expected KEY=VALUE, KEY a letter and up to %d more of A-Z a-z 0-9 _ . -, "
		       "VALUE 1 to %d printable ASCII characters; found %s",
		       SY_TAG_KEY_MAX - 1, SY_TAG_VALUE_MAX, found);
}

static int too_long(struct sy_error *err, const char *which, size_t length)
{
	char found[48];

	(void)snprintf(found, sizeof(found), "a %s of %zu bytes", which, length);
	return faulty(err, found);
}

int sy_tag_check(const char *text, struct sy_error *err)
{
	size_t key = key_length(text);
	const char *value = text + key + 1;

	if (!strchr(text, '='))
		return faulty(err, "no '='");
	if (key == 0 || text[key] != '=')
		return faulty(err, "another character in KEY");
	if (key > SY_TAG_KEY_MAX)
		return too_long(err, "KEY", key);
	if (*value == '\0')
		return faulty(err, "no VALUE");
	if (strlen(value) > SY_TAG_VALUE_MAX)
		return too_long(err, "VALUE", strlen(value));
	for (const char *c = value; *c; c++) {
		if (*c < ' ' || *c > '~')
			return faulty(err, "another character in VALUE");
	}
	return 0;
}

int sy_tags_add(struct sy_tags *tags, const char *text, struct sy_error *err)
{
	size_t length, at;

	if (sy_tag_check(text, err) < 0)
		return -1;
	length = key_length(text) + 1;
	for (at = 0; at < tags->count; at++) {
		if (strncmp(tags->items[at], text, length) == 0)
			break;
	}
	if (at == SY_TAGS_MAX)
		return sy_fail(err, "expected at most %d tags; found one more", SY_TAGS_MAX);
	(void)snprintf(tags->items[at], sizeof(tags->items[at]), "%s", text);
	if (at == tags->count)
		tags->count++;
	return 0;
}

int sy_tags_join(const struct sy_tags *tags, char *text, size_t size)
{
	size_t used = 0;

	if (size == 0)
		return -1;
	text[0] = '\0';
	for (size_t i = 0; i < tags->count; i++) {
		size_t length = strlen(tags->items[i]);

		if (used + length + 2 > size)
			return -1;
		if (i > 0)
			text[used++] = SEPARATOR;
		memcpy(text + used, tags->items[i], length + 1);
		used += length;
	}
	return (int)used;
}

void sy_tags_add_joined(struct sy_tags *tags, const char *text)
{
	char item[sizeof(tags->items[0])];

	while (*text) {
		const char *end = strchrnul(text, SEPARATOR);
		size_t length = (size_t)(end - text);

		if (length < sizeof(item)) {
			memcpy(item, text, length);
			item[length] = '\0';
			(void)sy_tags_add(tags, item, NULL);
		}
		text = *end ? end + 1 : end;
	}
}
