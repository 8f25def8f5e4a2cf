#include "netem/build.h"

#include "base/exec.h"
#include "base/file.h"
#include "netem/kernel/delay_table.h"
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
		if (strstr(text, ": netem ") &&
		    !sy_netem_needs_netem(sy_condition_spec(condition)) && !place->tbf)
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
	cleanup_free char *plan = sy_plan_apply(sy_condition_spec(condition), place,
						condition->protect, condition->protected_count);
	cleanup_free char *lines = NULL;
	int result;

	if (!plan || asprintf(&lines, "%sqdisc show dev %s\n", plan,
			      place->direction == SY_INGRESS ? place->ifb : place->device) < 0)
		return sy_fail(err, "out of memory");
	/* tc(8): where it looks for `distribution NAME`. */
	sy_run_telling(sy_condition_spec(condition)->distribution == SY_TABLE
			   ? "TC_LIB_DIR=" SY_DELAY_TABLES
			   : NULL);
	result = sy_run(argv, lines, &output, err);
	sy_run_telling(NULL);
	if (result < 0) {
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

static int read_ours(const struct sy_place *place, struct sy_qdiscs *list,
		     const struct sy_qdisc **ours, struct sy_error *err)
{
	bool ingress = place->direction == SY_INGRESS;

	if (sy_qdiscs_read(ingress ? (int)if_nametoindex(place->ifb) : place->index, list, err) < 0)
		return -1;
	*ours = sy_qdisc_by_handle(list, (SY_CHILD_MAJOR + place->band) << 16);
	return *ours ? 0
		     : sy_fail(err, "tc said nothing, but %s has no qdisc of ours",
			       ingress ? place->ifb : place->device);
}

/* tc of Debian 12 has no word for it. */
static int set_seed(const struct sy_condition *condition, const struct sy_place *place,
		    struct sy_error *err)
{
	cleanup_qdiscs struct sy_qdiscs list = {0};
	const struct sy_qdisc *ours;
	bool ingress = place->direction == SY_INGRESS;

	if (!sy_condition_spec(condition)->has_seed)
		return 0;
	if (read_ours(place, &list, &ours, err) < 0)
		return -1;
	return sy_qdisc_seed(ingress ? (int)if_nametoindex(place->ifb) : place->index, ours,
			     sy_condition_spec(condition)->seed, err);
}

/* What the kernel took, against what was asked. */
static int check_applied(struct sy_condition *condition, const struct sy_place *place,
			 struct sy_error *err)
{
	cleanup_qdiscs struct sy_qdiscs list = {0};
	char asked[SY_NETEM_SIZE], got[SY_NETEM_SIZE];
	struct sy_netem applied = *sy_condition_spec(condition);
	const struct sy_qdisc *ours;

	if (read_ours(place, &list, &ours, err) < 0)
		return -1;
	sy_qdisc_spec(ours, &applied);
	(void)sy_netem_format(sy_condition_spec(condition), asked);
	(void)sy_netem_format(&applied, got);
	/* Of a trace each step says what was applied. */
	(void)json_object_set_new(
	    sy_condition_document(condition), "applied",
	    json_object_get(condition->document, "trace")
		? json_incref(json_object_get(condition->document, "requested"))
		: json_string(got));
	if (applied.has_seed != sy_condition_spec(condition)->has_seed)
		return sy_fail(err, "seed: this kernel's sch_netem takes none: it came with Linux "
				    "6.6; leave seed= out");
	return strcmp(asked, got) ? sy_fail(err, "asked %s, but the kernel has %s", asked, got) : 0;
}

/* Of sites, whose queue it is; the tree before is told with the first on a device. */
static void tell_link(const struct sy_condition *condition, const struct sy_place *place)
{
	json_t *devices = json_object_get(condition->document, "devices");
	json_t *told = json_array_get(devices, json_array_size(devices) - 1);

	if (!condition->sites)
		return;
	for (size_t i = 0; i + 1 < json_array_size(devices); i++)
		if (json_equal(json_object_get(json_array_get(devices, i), "device"),
			       json_object_get(told, "device")))
			(void)json_object_del(told, "before");
	(void)json_object_set_new(told, "link", json_integer(place->link));
	(void)json_object_set_new(told, "to_site",
				  json_string(condition->sites->link[place->link].to));
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

/* Of sites another link may have made the root already. */
static void follow_root(const struct sy_condition *condition, size_t number, struct sy_place *place)
{
	for (size_t i = 0; i < number; i++)
		if (!strcmp(condition->place[i].device, place->device)) {
			place->first = false;
			place->htb = condition->place[i].htb;
		}
}

static int build(struct sy_condition *condition, size_t number, struct sy_error *err)
{
	struct sy_place *place = &condition->place[number];
	json_t *kept = json_array_get(
	    json_object_get(json_object_get(condition->document, "undo"), "places"), number);
	cleanup_free char *tree = NULL;
	int result;

	condition->link = place->link;
	if (condition->sites)
		follow_root(condition, number, place);
	if (make_single(place, kept, err) < 0)
		return -1;
	if (place->direction == SY_INGRESS && sy_ifb_make(place->ifb, err) < 0)
		return -1;
	while ((result = try_place(condition, place, &tree, err)) == 1)
		;
	if (result < 0 || set_seed(condition, place, err) < 0 ||
	    check_applied(condition, place, err) < 0)
		return -1;
	tell_device(condition, place, number, tree);
	tell_link(condition, place);
	return 0;
}

int sy_condition_change(struct sy_condition *condition, const struct sy_place *place,
			struct sy_error *err)
{
	static const char *const argv[] = {"tc", "-batch", "-", NULL};
	cleanup_free char *line = sy_plan_change(sy_condition_spec(condition), place);
	cleanup_free char *said = line ? sy_run_text(argv, line, err) : NULL;

	if (!line)
		return sy_fail(err, "out of memory");
	return said ? check_applied(condition, place, err) : -1;
}

int sy_condition_build(struct sy_condition *condition, struct sy_error *err)
{
	condition->failure = SY_NETEM_FAILED;
	for (int i = 0; i < condition->count; i++)
		if (build(condition, (size_t)i, err) < 0)
			return -1;
	condition->link = 0;
	if (condition->sites)
		(void)json_object_set(condition->document, "applied",
				      json_object_get(condition->document, "requested"));
	return 0;
}
