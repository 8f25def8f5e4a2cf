#include "netem/job_conditions.h"

#include "base/exec.h"
#include "base/file.h"
#include "netem/kernel/delay_tables.h"
#include "netem/kernel/device.h"
#include "netem/kernel/job_scope.h"
#include "netem/kernel/qdisc_snapshot.h"
#include "netem/spec/spec.h"
#include "netem/undo.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* Which line of its batch tc stopped at: "Command failed -:3". */
static int find_failed_line(const char *problem)
{
	const char *at = strstr(problem, "Command failed -:");
	int line;

	return at && sscanf(at, "Command failed -:%d", &line) == 1 ? line : 0;
}

static const char *find_line(const char *lines, int number)
{
	while (--number > 0 && lines) {
		lines = strchr(lines, '\n');
		lines = lines ? lines + 1 : NULL;
	}
	return lines ? lines : "";
}

static bool is_kind_unknown(const char *problem)
{
	return strstr(problem, "kind is unknown") ||
	       strstr(problem, "RTNETLINK answers: No such file or directory");
}

static int refuse_without_netem(struct sy_conditions *conditions, struct sy_error *err)
{
	struct utsname kernel = {0};

	(void)uname(&kernel);
	conditions->failure = SY_NETEM_FAILED;
	return sy_fail(err,
		       "this kernel has no sch_netem (modprobe sch_netem; on Debian: "
		       "linux-modules for %s)",
		       kernel.release);
}

/* tc refused: 1 when another way is left to try, else -1. */
static int read_refusal(struct sy_conditions *conditions, const struct sy_netem *spec,
			struct sy_placement *placement, const char *lines, const char *problem,
			struct sy_error *err)
{
	const char *line = find_line(lines, find_failed_line(problem));
	int length = (int)strcspn(line, "\n");
	cleanup_free char *text = strndup(line, (size_t)length);

	if (find_failed_line(problem) > 1)
		placement->first = false; /* the root exists: htb does not accept it twice */
	if (text && is_kind_unknown(problem)) {
		if (strstr(text, ": prio ") && !placement->htb)
			return placement->htb = true;
		if (strstr(text, ": netem ") && !sy_netem_needs_netem(spec) && !placement->tbf)
			return placement->tbf = true;
		if (strstr(text, ": netem "))
			return refuse_without_netem(conditions, err);
	}
	return sy_fail(err, "tc refused '%.200s': %.*s", text ? text : "",
		       (int)strcspn(problem, "\n"), problem);
}

/* One attempt: 0: done, `tree` is what tc shows now; 1: try again; -1. */
static int try_placement(struct sy_conditions *conditions, const struct sy_netem *spec,
			 struct sy_placement *placement, char **tree, struct sy_error *err)
{
	static const char *const argv[] = {"tc", "-batch", "-", NULL};
	cleanup_output struct sy_output output = {0};
	cleanup_free char *plan =
	    sy_plan_apply(spec, placement, conditions->protect, conditions->protected_count);
	cleanup_free char *lines = NULL;
	int result;

	if (!plan ||
	    asprintf(&lines, "%sqdisc show dev %s\n", plan,
		     placement->direction == SY_INGRESS ? placement->ifb : placement->device) < 0)
		return sy_fail(err, "out of memory");
	/* tc(8): where it looks for `distribution NAME`. */
	sy_run_pass_variable(spec->distribution == SY_TABLE ? "TC_LIB_DIR=" SY_TABLES : NULL);
	result = sy_run(argv, lines, &output, err);
	sy_run_pass_variable(NULL);
	if (result < 0) {
		if (output.missing)
			conditions->failure = SY_NETEM_MISSING;
		return -1;
	}
	if (output.status)
		return read_refusal(conditions, spec, placement, lines, output.problem, err);
	*tree = output.out;
	output.out = NULL;
	return 0;
}

static int read_own_qdisc(const struct sy_placement *placement, struct sy_qdiscs *list,
			  const struct sy_qdisc **ours, struct sy_error *err)
{
	bool ingress = placement->direction == SY_INGRESS;

	if (sy_qdiscs_read(ingress ? (int)if_nametoindex(placement->ifb) : placement->index, list,
			   err) < 0)
		return -1;
	*ours = sy_qdisc_by_handle(list, (SY_CHILD_MAJOR + placement->band) << 16);
	return *ours ? 0
		     : sy_fail(err, "tc reported no error, but %s has no qdisc of ours",
			       ingress ? placement->ifb : placement->device);
}

/* tc of Debian 12 has no word for it. */
static int set_seed(const struct sy_netem *spec, const struct sy_placement *placement,
		    struct sy_error *err)
{
	cleanup_qdiscs struct sy_qdiscs list = {0};
	const struct sy_qdisc *ours;
	bool ingress = placement->direction == SY_INGRESS;

	if (!spec->has_seed)
		return 0;
	if (read_own_qdisc(placement, &list, &ours, err) < 0)
		return -1;
	return sy_qdisc_seed(ingress ? (int)if_nametoindex(placement->ifb) : placement->index, ours,
			     spec->seed, err);
}

/* What the kernel has must be what was requested. */
static int check_applied(const struct sy_netem *spec, const struct sy_placement *placement,
			 struct sy_error *err)
{
	cleanup_qdiscs struct sy_qdiscs list = {0};
	char requested[SY_NETEM_SIZE], got[SY_NETEM_SIZE];
	struct sy_netem applied = *spec;
	const struct sy_qdisc *ours;

	if (read_own_qdisc(placement, &list, &ours, err) < 0)
		return -1;
	sy_qdisc_read_spec(ours, &applied);
	(void)sy_netem_format(spec, requested);
	(void)sy_netem_format(&applied, got);
	if (applied.has_seed != spec->has_seed)
		return sy_fail(err, "seed: this kernel's sch_netem takes none: it came with Linux "
				    "6.6; leave seed= out");
	return strcmp(requested, got)
		   ? sy_fail(err, "requested %s, but the kernel has %s", requested, got)
		   : 0;
}

/* Of several conditions on a device the first one has the tree before; a link has its number. */
static void label_link(json_t *devices, const struct sy_condition *condition,
		       const struct sy_placement *placement)
{
	json_t *device = json_array_get(devices, json_array_size(devices) - 1);

	if (!*condition->to_site)
		return;
	for (size_t i = 0; i + 1 < json_array_size(devices); i++)
		if (json_equal(json_object_get(json_array_get(devices, i), "device"),
			       json_object_get(device, "device")))
			(void)json_object_del(device, "before");
	(void)json_object_set_new(device, "link", json_integer(placement->condition));
	(void)json_object_set_new(device, "to_site", json_string(condition->to_site));
}

static void add_device(json_t *devices, json_t *undo, const struct sy_placement *placement,
		       const char *tree)
{
	cleanup_free char *line = sy_tree_find_own(tree, placement);
	int64_t segments = sy_gso_segments_read(placement->device);

	(void)json_object_set_new(undo, "htb", json_boolean(placement->htb));
	(void)json_object_set_new(undo, "tbf", json_boolean(placement->tbf));
	(void)json_array_append_new(
	    devices,
	    json_pack("{s:s, s:s, s:s, s:I, s:I, s:s, s:O, s:O, s:o}", "device", placement->device,
		      "direction", placement->direction == SY_INGRESS ? "ingress" : "egress",
		      "qdisc", placement->tbf ? "tbf" : "netem", "limit_packets",
		      (json_int_t)placement->limit_packets, "mtu", (json_int_t)placement->mtu,
		      "kernel", line ? line : "", "before", json_object_get(undo, "before"),
		      "offloads_off", json_object_get(undo, "offloads"), "gso_max_segs",
		      segments < 0 ? json_null() : json_integer(segments)));
}

/* What netem is to lose, double, spoil or send ahead must come to it one by one. */
static int split_packets(const struct sy_placement *placement, const json_t *undo,
			 struct sy_error *err)
{
	if (sy_offloads_set(placement->device, json_object_get(undo, "offloads"), false, err) < 0)
		return -1;
	return json_integer_value(json_object_get(undo, "gso_max_segs")) > 0
		   ? sy_gso_segments_set(placement->device, 1, err)
		   : 0;
}

/* The root that this place has made or found is that of the conditions after it, too. */
static void pass_on_root(struct sy_conditions *conditions, const struct sy_placement *made)
{
	for (int i = made->condition + 1; i < conditions->count; i++)
		for (int j = 0; j < conditions->item[i].placement_count; j++) {
			struct sy_placement *placement = &conditions->item[i].placement[j];

			if (strcmp(placement->device, made->device) != 0 ||
			    placement->direction != made->direction)
				continue;
			placement->first = false;
			placement->htb = made->htb;
		}
}

static int build_placement(struct sy_conditions *conditions, struct sy_condition *condition,
			   int number, struct sy_error *err)
{
	struct sy_placement *placement = &condition->placement[number];
	json_t *devices = json_object_get(conditions->document, "devices");
	cleanup_free char *tree = NULL;
	int result;

	if (split_packets(placement, condition->undo[number], err) < 0)
		return -1;
	if (placement->direction == SY_INGRESS && sy_ifb_create(placement->ifb, err) < 0)
		return -1;
	while ((result = try_placement(conditions, condition->spec, placement, &tree, err)) == 1)
		;
	if (result < 0 || set_seed(condition->spec, placement, err) < 0 ||
	    check_applied(condition->spec, placement, err) < 0)
		return -1;
	pass_on_root(conditions, placement);
	add_device(devices, condition->undo[number], placement, tree);
	label_link(devices, condition, placement);
	return 0;
}

int sy_condition_change(const struct sy_condition *condition, const struct sy_placement *placement,
			struct sy_error *err)
{
	static const char *const argv[] = {"tc", "-batch", "-", NULL};
	cleanup_free char *line = sy_plan_change(condition->spec, placement);
	cleanup_free char *output = line ? sy_run_text(argv, line, err) : NULL;

	if (!line)
		return sy_fail(err, "out of memory");
	return output ? check_applied(condition->spec, placement, err) : -1;
}

/* The kernel has what was requested, word by word: check_applied(). */
static void set_applied(json_t *document)
{
	(void)json_object_set(document, "applied", json_object_get(document, "requested"));
}

int sy_conditions_build(struct sy_conditions *conditions, struct sy_error *err)
{
	conditions->failure = SY_NETEM_FAILED;
	for (int i = 0; i < conditions->count; i++) {
		struct sy_condition *condition = &conditions->item[i];

		for (int j = 0; j < condition->placement_count; j++)
			if (build_placement(conditions, condition, j, err) < 0)
				return -1;
		set_applied(condition->document);
	}
	set_applied(conditions->document);
	return 0;
}

/* A program writes one priority, so a condition has the same band on all of its devices. */
static int find_band(const struct sy_condition *condition, struct sy_scope_rule *rule,
		     struct sy_error *err)
{
	*rule = (struct sy_scope_rule){.spec = condition->spec};
	for (int i = 0; i < condition->placement_count; i++) {
		uint32_t class = SY_ROOT_MAJOR << 16 | condition->placement[i].band;

		if (rule->priority && rule->priority != class)
			return sy_fail(err, "the devices have no band in common: name one with "
					    "dev=");
		rule->priority = class;
	}
	return 0;
}

int sy_conditions_attach(const struct sy_conditions *conditions, struct sy_error *err)
{
	cleanup_free struct bpf_insn *code = calloc(SY_SCOPE_MOST, sizeof(*code));
	const json_t *undo = json_object_get(conditions->document, "undo");
	const char *folder = json_string_value(json_object_get(undo, "cgroup"));
	struct sy_scope_rule rule[SY_SCOPE_RULES];
	int count;

	if (!folder || !conditions->count)
		return 0;
	if (!code)
		return sy_fail(err, "out of memory");
	for (int i = 0; i < conditions->count; i++)
		if (find_band(&conditions->item[i], &rule[i], err) < 0)
			return -1;
	count = sy_scope_program(rule, conditions->count, conditions->protect,
				 conditions->protected_count, code);
	return count < 0 ? sy_fail(err, "too many networks for a cgroup program")
			 : sy_scope_attach(folder, code, count, err);
}
