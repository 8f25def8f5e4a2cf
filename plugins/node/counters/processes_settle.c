/* A parent is read after its child was found gone: if it has waited for it, it shows it. A child
 * that is still listed was seen alive after its parent was read: so the parent does not show it
 * yet. The main loop holds that order, as parents stand before their children; whoever is read
 * out of turn has its children looked at once more (more_have_gone). */
#include "counters/processes_settle.h"

#include "counters/processes_read.h"

#include <stddef.h>

#define DEPTH 64 /* of a chain of parents, should ids have made a ring of it */

static bool may_show(const struct sy_process *process)
{
	return !process->gone || process->root || process->final;
}

/* The nearest ancestor that is there, or a root; `direct`: it is the parent itself. */
static struct sy_process *heir_of(struct sy_processes *all, const struct sy_process *process,
				  bool *direct)
{
	struct sy_process *heir = sy_process_find(all, process->parent);

	*direct = heir && may_show(heir);
	for (int depth = 0; heir && !may_show(heir) && depth < DEPTH; depth++)
		heir = sy_process_find(all, heir->parent);
	return heir && may_show(heir) ? heir : NULL;
}

static struct sy_process *root_above(struct sy_processes *all, const struct sy_process *process)
{
	struct sy_process *above = sy_process_find(all, process->parent);

	for (int depth = 0; above && !above->root && depth < DEPTH; depth++)
		above = sy_process_find(all, above->parent);
	return above && above->root ? above : NULL;
}

static void leave_to(struct sy_process *heir, const struct sy_usage *usage, int at_work)
{
	sy_usage_add(&heir->lost, usage);
	heir->lost_at_work += at_work;
	heir->bereaved = heir->force = true;
}

/* Hand what a process that is gone has used to whoever may have waited for it. */
static void bequeath(struct sy_processes *all, struct sy_process *process)
{
	bool direct;
	struct sy_process *heir = heir_of(all, process, &direct);
	int at_work = process->ran_at >= all->sample - 1;

	sy_process_close(all, process);
	all->orphaned = true;
	if (!heir) {
		sy_usage_add(&all->kept, &process->now);
		all->unwaited += process->head && !process->final;
		return;
	}
	leave_to(heir, &process->now, at_work);
	heir->unsure |= !direct;
}

static void look_after_orphans(struct sy_processes *all)
{
	if (!all->orphaned)
		return;
	all->orphaned = false;
	for (int i = 0; i < all->count; i++) {
		struct sy_process *process = &all->process[i];
		const struct sy_process *parent = sy_process_find(all, process->parent);

		if (parent && parent->gone && !parent->root)
			process->inherits = process->force = true;
	}
}

static bool has_waited(const struct sy_process *parent)
{
	return parent->done || parent->reaped_faults > parent->reaped_faults_before;
}

/* What a parent has lost and its counters have not grown by, into `missing`; what they have grown
 * by is used up. CPU of the waited-for is told in whole ticks, twice rounded down: that is allowed
 * for where the parent has waited for anybody at all, which page faults tell to the last one. */
static void weigh_loss(const struct sy_processes *all, struct sy_process *parent,
		       struct sy_usage *missing)
{
	bool waited = has_waited(parent);

	for (int i = 0; i < SY_USES; i++) {
		bool is_cpu = i == SY_USE_CPU_NS && !parent->done;
		int64_t *before = is_cpu ? &parent->reaped_before_ns : &parent->before.use[i];
		int64_t gain = (is_cpu ? parent->reaped_ns : parent->now.use[i]) - *before;
		int64_t slack = i == SY_USE_CPU_NS && waited ? 2 * all->tick_ns : 0;
		int64_t lost = parent->lost.use[i];

		missing->use[i] = lost > gain + slack ? lost - gain : 0;
		*before += lost < gain ? lost : gain;
		parent->lost.use[i] = 0;
	}
	parent->bereaved = false;
}

static bool tells_at_its_end(const struct sy_processes *all, const struct sy_process *root)
{
	return root->gone || root->done || root->veiled_at == all->sample;
}

static bool is_none(const struct sy_usage *usage)
{
	for (int i = 0; i < SY_USES; i++)
		if (usage->use[i])
			return false;
	return true;
}

/* A root's own I/O is read a moment after the sum that it is taken off, and may have grown by then:
 * what seems to be missing of children it has waited for is told at its end, too. */
static bool keep_of_root(struct sy_processes *all, struct sy_process *root,
			 const struct sy_usage *missing)
{
	bool told = tells_at_its_end(all, root), any = false;

	for (int i = 0; i < SY_USES; i++) {
		bool beside = told || (i != SY_USE_CPU_NS && has_waited(root));

		*(beside ? &root->kept.use[i] : &all->kept.use[i]) += missing->use[i];
		any |= !beside && missing->use[i];
	}
	return any;
}

/* What a parent does not show. A root that could not be asked any more tells it at its end; and a
 * root may have adopted, and waited for, what was orphaned. Returns whether that is to be seen. */
static bool keep(struct sy_processes *all, struct sy_process *parent,
		 const struct sy_usage *missing)
{
	struct sy_process *root = parent->unsure ? root_above(all, parent) : NULL;
	/* Of one that waits for its children what is missing is rounding. */
	int at_work = is_none(missing) || has_waited(parent) ? 0 : parent->lost_at_work;

	parent->unsure = false;
	parent->lost_at_work = 0;
	if (parent->root) {
		if (keep_of_root(all, parent, missing))
			all->unwaited += at_work;
	} else if (root) {
		leave_to(root, missing, at_work);
		return true;
	} else {
		sy_usage_add(&all->kept, missing);
		all->unwaited += at_work;
	}
	return false;
}

/* Keep beside a parent what its counters do not show of children that are gone. Returns whether
 * somebody else must be settled again: if it has gone itself since it was read, its own parent. */
static bool settle(struct sy_processes *all, struct sy_process *parent)
{
	struct sy_usage missing;
	bool was_gone = parent->gone, goes;

	if (parent->force && !parent->gone) {
		sy_process_read(all, parent, SY_EVERYTHING);
		parent->out_of_turn = true;
	}
	goes = parent->gone && !was_gone && !parent->root;
	if (!parent->bereaved && !goes)
		return false;
	weigh_loss(all, parent, &missing);
	if (!goes)
		return keep(all, parent, &missing);
	sy_usage_add(&parent->now, &missing);
	parent->lost_at_work = 0; /* its own loss is told with it */
	bequeath(all, parent);
	return true;
}

static bool is_gone(const struct sy_process *process)
{
	int64_t clock = sy_process_clock_ns(process->pid);

	return clock < 0 || clock < process->clock_ns;
}

/* A parent that was read out of turn may show children that were seen alive before. */
static bool more_have_gone(struct sy_processes *all)
{
	bool any = false;

	for (int i = 0; i < all->count; i++) {
		struct sy_process *child = &all->process[i];
		const struct sy_process *parent = sy_process_find(all, child->parent);

		if (!parent || !parent->out_of_turn || child->gone || child->root ||
		    !is_gone(child))
			continue;
		child->gone = any = true;
		bequeath(all, child);
	}
	for (int i = 0; i < all->count; i++)
		all->process[i].out_of_turn = false;
	return any;
}

void sy_processes_settle(struct sy_processes *all)
{
	for (int i = 0; i < all->count; i++)
		if (all->process[i].gone && !all->process[i].root)
			bequeath(all, &all->process[i]);
	do {
		for (bool again = true; again;) {
			again = false;
			look_after_orphans(all);
			for (int i = 0; i < all->count; i++)
				again |= settle(all, &all->process[i]);
		}
	} while (more_have_gone(all));
}
