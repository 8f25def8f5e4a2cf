/* AdminComment, which is everybody's: what others wrote stays to the byte, blanks between its
 * members aside; merged twice is merged once. */
#include "fuzz.h"

#include <jansson.h>

#include "job/comment.h"

#define OWN "{\"cpu_s\":1.5,\"tags\":{\"a\":\"}\\\"\"}}"

/* Without the blanks that are in no string. */
static char *squeezed(const char *text)
{
	char *result = malloc(strlen(text) + 1), *to = result;
	bool quoted = false;

	must(result);
	for (; *text; text++) {
		if (!quoted && strchr(" \t\r\n", *text))
			continue;
		*to++ = *text;
		if (quoted && *text == '\\' && text[1])
			*to++ = *++text;
		else if (*text == '"')
			quoted = !quoted;
	}
	*to = '\0';
	return result;
}

/* Where nothing of ours was before: what stood there, our member behind it. */
static void must_keep_bytes(const char *present, const char *merged)
{
	char *before = squeezed(present), *after = squeezed(merged), *expected = NULL;
	size_t length = strlen(before);

	must(length >= 2 && asprintf(&expected, "%.*s%s\"steelyard\":" OWN "}", (int)length - 1,
				     before, length > 2 ? "," : "") > 0);
	must(strcmp(after, expected) == 0);
	free(before);
	free(after);
	free(expected);
}

static void must_be_good(const char *present, const char *merged)
{
	json_t *before = json_loads(present, JSON_REJECT_DUPLICATES, NULL);
	json_t *after = json_loads(merged, JSON_REJECT_DUPLICATES, NULL), *own;
	const char *why;
	char *again = sy_comment_merge(merged, OWN, &why);

	must(json_is_object(after) && strlen(merged) <= SY_ADMIN_COMMENT_MAX);
	own = json_loads(OWN, 0, NULL);
	must(json_equal(json_object_get(after, SY_COMMENT_KEY), own));
	must(again && strcmp(again, merged) == 0);
	if (json_is_object(before) && !json_object_get(before, SY_COMMENT_KEY))
		must_keep_bytes(present, merged);
	json_decref(before);
	json_decref(after);
	json_decref(own);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *present = text_of(data, size), *merged;
	const char *why = NULL;

	merged = sy_comment_merge(present, OWN, &why);
	if (merged)
		must_be_good(present, merged);
	else
		must(why && *why);
	free(merged);
	free(present);
	return 0;
}
