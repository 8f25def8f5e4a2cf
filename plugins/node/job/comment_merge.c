#include "job/comment_merge.h"

#include "job/comment.h"

#include <ctype.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a member of a valid object ends: at its comma, or the brace after the last one. */
static const char *member_end(const char *at)
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
static bool is_named(const char *member, const char *name)
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

/* Its members but ours, as they stand there, with a comma behind each. */
static char *others(const char *present)
{
	char *kept = malloc(strlen(present) + 2), *to = kept;
	const char *at = strchr(present, '{') + 1, *end;

	for (; kept && *at; at = *end == ',' ? end + 1 : "") {
		end = member_end(at);
		while (isspace((unsigned char)*at))
			at++;
		if (at == end || is_named(at, SY_COMMENT_KEY))
			continue;
		to = mempcpy(to, at, (size_t)(end - at));
		*to++ = ',';
	}
	if (kept)
		*to = '\0';
	return kept;
}

static bool is_blank(const char *text)
{
	return !text || text[strspn(text, " \t\r\n")] == '\0';
}

static char *joined(const char *kept, const char *own)
{
	char *text = NULL;

	if (asprintf(&text, "{%s\"" SY_COMMENT_KEY "\":%s}", kept, own) < 0)
		return NULL;
	return text;
}

char *sy_comment_merge(const char *present, const char *own, const char **why)
{
	json_t *document = NULL;
	char *kept, *text;

	*why = "no memory";
	if (is_blank(present))
		return joined("", own);
	document = json_loads(present, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(document)) {
		json_decref(document);
		*why = "there is text of somebody else that is no JSON object";
		return NULL;
	}
	kept = others(present);
	text = kept ? joined(kept, own) : NULL;
	free(kept);
	json_decref(document);
	if (text && strlen(text) > SY_ADMIN_COMMENT_MAX) {
		*why = "what others wrote leaves no room";
		free(text);
		return NULL;
	}
	return text;
}

static double elapsed_s(const json_t *own)
{
	return json_number_value(json_object_get(own, sy_total_facts[SY_ELAPSED_S].name));
}

bool sy_comment_is_later(const char *present, const char *own)
{
	json_t *document = present ? json_loads(present, 0, NULL) : NULL;
	json_t *ours = json_loads(own, 0, NULL);
	bool is_later = elapsed_s(json_object_get(document, SY_COMMENT_KEY)) > elapsed_s(ours);

	json_decref(document);
	json_decref(ours);
	return is_later;
}
