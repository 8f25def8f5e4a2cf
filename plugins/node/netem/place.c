/* Places in the state file, and the tree of a device as text. */
#include "netem/undo.h"

#include "base/exec.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>

json_t *sy_place_json(const struct sy_place *place)
{
	return json_pack("{s:s, s:i, s:s, s:s, s:i, s:b, s:b, s:b, s:I, s:I}", "device",
			 place->device, "index", place->index, "direction",
			 place->direction == SY_INGRESS ? "ingress" : "egress", "ifb", place->ifb,
			 "band", (int)place->band, "htb", place->htb, "tbf", place->tbf,
			 "by_cgroup", place->by_cgroup, "mtu", (json_int_t)place->mtu,
			 "limit_packets", (json_int_t)place->limit_packets);
}

static void copy_name(const json_t *json, const char *key, char *name)
{
	const char *text = json_string_value(json_object_get(json, key));

	(void)snprintf(name, SY_DEVICE_SIZE, "%s", text ? text : "");
}

static json_int_t number(const json_t *json, const char *key)
{
	return json_integer_value(json_object_get(json, key));
}

void sy_place_read(const json_t *json, struct sy_place *place)
{
	const char *direction = json_string_value(json_object_get(json, "direction"));

	*place = (struct sy_place){
	    .index = (int)number(json, "index"),
	    .direction = direction && !strcmp(direction, "ingress") ? SY_INGRESS : SY_EGRESS,
	    .band = (unsigned)number(json, "band"),
	    .htb = json_is_true(json_object_get(json, "htb")),
	    .tbf = json_is_true(json_object_get(json, "tbf")),
	    .by_cgroup = json_is_true(json_object_get(json, "by_cgroup")),
	    .mtu = number(json, "mtu"),
	    .limit_packets = number(json, "limit_packets"),
	};
	copy_name(json, "device", place->device);
	copy_name(json, "ifb", place->ifb);
}

static json_t *place_on(const json_t *state, const char *device)
{
	json_t *places = json_object_get(json_object_get(state, "undo"), "places"), *place;
	size_t i;

	json_array_foreach(places, i, place)
	{
		const char *name = json_string_value(json_object_get(place, "device"));

		if (name && !strcmp(name, device))
			return place;
	}
	return NULL;
}

json_t *sy_place_shared(const struct sy_states *states, const char *but, const char *device)
{
	const char *name;
	json_t *state;

	json_object_foreach(states->all, name, state)
	{
		enum sy_owner owner;
		json_t *place;

		if (but && !strcmp(name, but))
			continue;
		owner = sy_state_owner(state);
		place = place_on(state, device);
		if (place && (owner == SY_OWNER_LIVES || owner == SY_OWNER_GONE))
			return place;
	}
	return NULL;
}

char *sy_tree_text(const char *device, struct sy_error *err)
{
	const char *argv[] = {"tc", "qdisc", "show", "dev", device, NULL};

	return sy_run_text(argv, NULL, err);
}

char *sy_tree_own_line(const char *tree, const struct sy_place *place)
{
	char start[40];
	const char *line;

	(void)snprintf(start, sizeof(start), "qdisc %s %x:", place->tbf ? "tbf" : "netem",
		       SY_CHILD_MAJOR + place->band);
	line = strstr(tree, start);
	return line ? strndup(line, strcspn(line, "\n")) : strdup("");
}
