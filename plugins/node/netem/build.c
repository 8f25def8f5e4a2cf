#include "netem/build.h"

#include "base/exec.h"
#include "base/file.h"
#include "netem/kernel/link.h"
#include "netem/kernel/offload.h"
#include "netem/kernel/qdisc.h"
#include "netem/spec/text.h"
#include "netem/undo.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* Which line of its batch tc stopped at: "Command failed -:3". */
static int failed_line(const char *problem)
{
	const char *at = strstr(problem, "Command failed -:");
	int line;

	return at && sscanf(at, "Command failed -:%d", &line) == 1 ? line : 0;
}

static const char *line_of(const char *lines, int number)
{
	while (--number > 0 && lines) {
		lines = strchr(lines, '\n');
		lines = lines ? lines + 1 : NULL;
	}
	return lines ? lines : "";
}

static bool kind_unknown(const char *problem)
{
	return strstr(problem, "kind is unknown") ||
	       strstr(problem, "RTNETLINK answers: No such file or directory");
}

static int no_netem(struct sy_condition *condition, struct sy_error *err)
{
	struct utsname kernel = {0};

	(void)uname(&kernel);
	condition->failure = SY_NETEM_FAILED;
	return sy_fail(err,
		       "this kernel has no sch_netem (modprobe sch_netem; on Debian: "
		       "linux-modules for %s)",
		       kernel.release);
}

/* tc refused: 1 when another way is left to try, else -1. */
static int understand(struct sy_condition *condition, struct sy_place *place, const char *lines,
		      const char *problem, struct sy_error *err)
{
	const char *line = line_of(lines, failed_line(problem));
	int length = (int)strcspn(line, "\n");
	cleanup_free char *text = strndup(line, (size_t)length);

	if (failed_line(problem) > 1)
		place->first = false; /* the root stands: htb does not take it twice */
	if (text && kind_unknown(problem)) {
		if (strstr(text, ": prio ") && !place->htb)
			return place->htb = true;
		if (strstr(text, ": netem ") && !sy_netem_needs_netem(condition->spec) &&
		    !place->tbf)
			return place->tbf = true;
		if (strstr(text, ": netem "))
			return no_netem(condition, err);
	}
	return sy_fail(err, "tc refused '%.200s': %.*s", text ? text : "",
		       (int)strcspn(problem, "\n"), problem);
}

/* One try: 0 done, `tree` is what stands there now; 1 try again; -1. */
static int try_place(struct sy_condition *condition, struct sy_place *place, char **tree,
		     struct sy_error *err)
{
	static const char *const argv[] = {"tc", "-batch", "-", NULL};
	cleanup_output struct sy_output output = {0};
	cleanup_free char *plan =
	    sy_plan_apply(condition->spec, place, condition->protect, condition->protected_count);
	cleanup_free char *lines = NULL;

	if (!plan || asprintf(&lines, "%sqdisc show dev %s\n", plan,
			      place->direction == SY_INGRESS ? place->ifb : place->device) < 0)
		return sy_fail(err, "out of memory");
	if (sy_run(argv, lines, &output, err) < 0) {
		if (output.missing)
			condition->failure = SY_NETEM_MISSING;
		return -1;
	}
	if (output.status)
		return understand(condition, place, lines, output.problem, err);
	*tree = output.out;
	output.out = NULL;
	return 0;
}

/* What the kernel took, against what was asked. */
static int check_applied(struct sy_condition *condition, const struct sy_place *place,
			 struct sy_error *err)
{
	const char *device = place->direction == SY_INGRESS ? place->ifb : place->device;
	cleanup_qdiscs struct sy_qdiscs list = {0};
	char asked[SY_NETEM_SIZE], got[SY_NETEM_SIZE];
	struct sy_netem applied = *condition->spec;
	const struct sy_qdisc *ours;

	if (sy_qdiscs_read(place->direction == SY_INGRESS ? (int)if_nametoindex(device)
							  : place->index,
			   &list, err) < 0)
		return -1;
	ours = sy_qdisc_by_handle(&list, (SY_CHILD_MAJOR + place->band) << 16);
	if (!ours)
		return sy_fail(err, "tc said nothing, but %s has no qdisc of ours", device);
	sy_qdisc_spec(ours, &applied);
	(void)sy_netem_format(condition->spec, asked);
	(void)sy_netem_format(&applied, got);
	(void)json_object_set_new(condition->document, "applied", json_string(got));
	return strcmp(asked, got) ? sy_fail(err, "asked %s, but the kernel has %s", asked, got) : 0;
}

static void tell_device(struct sy_condition *condition, const struct sy_place *place, size_t number,
			const char *tree)
{
	json_t *kept = json_array_get(
	    json_object_get(json_object_get(condition->document, "undo"), "places"), number);
	cleanup_free char *line = sy_tree_own_line(tree, place);
	int64_t segments = sy_gso_segments(place->device);

	(void)json_object_set_new(kept, "htb", json_boolean(place->htb));
	(void)json_object_set_new(kept, "tbf", json_boolean(place->tbf));
	(void)json_array_append_new(
	    json_object_get(condition->document, "devices"),
	    json_pack("{s:s, s:s, s:s, s:I, s:I, s:s, s:O, s:O, s:o}", "device", place->device,
		      "direction", place->direction == SY_INGRESS ? "ingress" : "egress", "qdisc",
		      place->tbf ? "tbf" : "netem", "limit_packets",
		      (json_int_t)place->limit_packets, "mtu", (json_int_t)place->mtu, "kernel",
		      line ? line : "", "before", json_object_get(kept, "before"), "offloads_off",
		      json_object_get(kept, "offloads"), "gso_max_segs",
		      segments < 0 ? json_null() : json_integer(segments)));
}

/* What netem is to lose, double, spoil or send ahead must come to it one by one. */
static int make_single(const struct sy_place *place, const json_t *kept, struct sy_error *err)
{
	if (sy_offloads_set(place->device, json_object_get(kept, "offloads"), false, err) < 0)
		return -1;
	return json_integer_value(json_object_get(kept, "gso_max_segs")) > 0
		   ? sy_gso_segments_set(place->device, 1, err)
		   : 0;
}

static int build(struct sy_condition *condition, size_t number, struct sy_error *err)
{
	struct sy_place *place = &condition->place[number];
	json_t *kept = json_array_get(
	    json_object_get(json_object_get(condition->document, "undo"), "places"), number);
	cleanup_free char *tree = NULL;
	int result;

	if (make_single(place, kept, err) < 0)
		return -1;
	if (place->direction == SY_INGRESS && sy_ifb_make(place->ifb, err) < 0)
		return -1;
	while ((result = try_place(condition, place, &tree, err)) == 1)
		;
	if (result < 0 || check_applied(condition, place, err) < 0)
		return -1;
	tell_device(condition, place, number, tree);
	return 0;
}

int sy_condition_build(struct sy_condition *condition, struct sy_error *err)
{
	condition->failure = SY_NETEM_FAILED;
	for (int i = 0; i < condition->count; i++)
		if (build(condition, (size_t)i, err) < 0)
			return -1;
	return 0;
}
