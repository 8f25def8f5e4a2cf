#include "netem/scoping.h"

#include "base/file.h"
#include "netem/kernel/scope.h"
#include "netem/kernel/scope_program.h"

#include <stdlib.h>

/* Each link's band; the bands of all devices are one: a program can write but one priority. */
static int find_wishes(const struct sy_condition *condition, struct sy_scope_wish *wish,
		       struct sy_error *err)
{
	int count = condition->sites ? condition->sites->count : 1;

	for (int i = 0; i < count; i++)
		wish[i] = (struct sy_scope_wish){
		    .spec = condition->sites ? &condition->sites->link[i].spec : condition->spec};
	for (int i = 0; i < condition->count; i++) {
		const struct sy_place *place = &condition->place[i];
		uint32_t class = SY_ROOT_MAJOR << 16 | place->band;

		if (wish[place->link].priority && wish[place->link].priority != class)
			return sy_fail(err, "the devices have no band in common: name one with "
					    "dev=");
		wish[place->link].priority = class;
	}
	return count;
}

int sy_condition_attach(const struct sy_condition *condition, struct sy_error *err)
{
	cleanup_free struct bpf_insn *code = calloc(SY_SCOPE_MOST, sizeof(*code));
	const json_t *undo = json_object_get(condition->document, "undo");
	const char *folder = json_string_value(json_object_get(undo, "cgroup"));
	struct sy_scope_wish wish[SY_SCOPE_WISHES];
	int wishes, count;

	if (!folder || !condition->count)
		return 0;
	if (!code)
		return sy_fail(err, "out of memory");
	wishes = find_wishes(condition, wish, err);
	if (wishes < 0)
		return -1;
	count =
	    sy_scope_program(wish, wishes, condition->protect, condition->protected_count, code);
	return count < 0 ? sy_fail(err, "too many networks for a cgroup program")
			 : sy_scope_attach(folder, code, count, err);
}
