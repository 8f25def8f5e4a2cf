#include "comment.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *text_or_null(const char *text)
{
	return *text ? json_string(text) : json_null();
}

static json_t *total_value(const struct sy_totals *totals, enum sy_total which)
{
	if (!totals->known[which])
		return json_null();
	if (sy_total_is_bytes(which))
		return json_integer((json_int_t)totals->value[which]);
	return json_real(totals->value[which]);
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

static char *text_with_tags(const struct sy_comment *comment, size_t tags)
{
	json_t *object = json_object();
	char *text;

	(void)json_object_set_new(object, "steelyard", json_integer(1));
	(void)json_object_set_new(object, "node_type", text_or_null(comment->kind.node_type));
	(void)json_object_set_new(object, "vm", text_or_null(comment->kind.vm));
	(void)json_object_set_new(object, "container", text_or_null(comment->kind.container));
	(void)json_object_set_new(object, "kernel", text_or_null(comment->kind.kernel));
	(void)json_object_set_new(object, "tags", first_tags(comment->tags, tags));
	(void)json_object_set_new(object, "nodes",
				  comment->nodes < 0 ? json_null() : json_integer(comment->nodes));
	(void)json_object_set_new(object, "nodes_weighed",
				  json_integer(comment->totals->nodes_weighed));
	for (int i = 0; i < SY_TOTALS; i++)
		(void)json_object_set_new(object, sy_total_name((enum sy_total)i),
					  total_value(&comment->totals->sum, (enum sy_total)i));
	if (comment->netem) {
		(void)json_object_set_new(object, "netem", json_string(comment->netem));
		(void)json_object_set_new(
		    object, "netem_valid",
		    comment->netem_valid < 0 ? json_null() : json_boolean(comment->netem_valid));
	}
	/* Nine digits: microseconds in a job of 15 minutes, and no 0.30000000000000004. */
	text = json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
	json_decref(object);
	return text;
}

char *sy_comment_text(const struct sy_comment *comment)
{
	size_t tags = comment->tags->count;
	char *text = text_with_tags(comment, tags);

	while (text && strlen(text) > SY_COMMENT_MAX && tags > 0) {
		free(text);
		text = text_with_tags(comment, --tags);
	}
	return text;
}

static void copy_text(char *to, size_t size, const json_t *value)
{
	(void)snprintf(to, size, "%s", json_is_string(value) ? json_string_value(value) : "");
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
	json_decref(record);
}
