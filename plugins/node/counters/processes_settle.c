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

static void leave_to(struct sy_process *heir, const struct sy_usage *usage)
{
	sy_usage_add(&heir->lost, usage);
	heir->bereaved = heir->force = true;
}

/* If it worked when it was seen last, what it did from there on no counter of ours may hold. Not
 * what a step's daemon has forked off for itself, as for AdminComment. */
static struct sy_gone gone_of(const struct sy_processes *all, const struct sy_process *process)
{
	struct sy_gone gone = {.faults = process->faults};

	if (!process->final && !process->of_daemon &&
	    (process->head || sy_process_is_at_work(all, process, all->before_us))) {
		gone.at_work = 1;
		gone.least = gone.faults;
		gone.most_us = (all->now_us - all->before_us) * process->tasks;
	} else {
		gone.resting = gone.faults;
	}
	return gone;
}

/* Those below it that it has left. */
static struct sy_gone left_by(struct sy_process *process)
{
	struct sy_gone left = process->children;

	sy_gone_add(&left, &process->others);
	process->children = process->others = (struct sy_gone){0};
	return left;
}

/* Hand what a process that is gone has used to whoever may have waited for it. */
static void bequeath(struct sy_processes *all, struct sy_process *process)
{
	bool direct;
	struct sy_process *heir = heir_of(all, process, &direct);
	struct sy_gone gone = gone_of(all, process), left = left_by(process);

	sy_process_close(all, process);
	all->orphaned = true;
	if (!heir) {
		sy_usage_add(&all->kept, &process->now);
		sy_gone_add(&all->unwaited, &gone);
		sy_gone_add(&all->unwaited, &left);
		return;
	}
	leave_to(heir, &process->now);
	sy_gone_add(direct ? &heir->children : &heir->others, &gone);
	sy_gone_add(&heir->others, &left);
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

/* The page faults of what a root, a daemon, has forked off for itself may pass for those of one
 * that it has not waited for; its CPU may not. weigh_loss() has allowed for ticks. */
static bool lacks_cpu_of_gone(const struct sy_processes *all, const struct sy_process *parent,
			      const struct sy_usage *missing)
{
	return parent->root && !all->coarse_clock && missing->use[SY_USE_CPU_NS] > 0;
}

/* Who is gone and whom a parent does not show. Its children it has waited for, or for nobody; those
 * below them it has adopted, or somebody whom we do not know: then their bytes lack, too. */
static struct sy_gone not_shown(const struct sy_processes *all, struct sy_process *parent,
				const struct sy_usage *missing)
{
	int64_t left = parent->reaped_faults - parent->shown_faults;
	bool bytes = missing->use[SY_USE_RCHAR] || missing->use[SY_USE_WCHAR];
	bool tells_bytes = !parent->root && !parent->deaf;
	bool lacks_cpu = lacks_cpu_of_gone(all, parent, missing);
	struct sy_gone gone = {0};

	if (!sy_gone_are_shown(&parent->children, &left) || (lacks_cpu && !parent->others.at_work))
		sy_gone_add(&gone, &parent->children);
	if (!sy_gone_are_shown(&parent->others, &left) || (bytes && tells_bytes) || lacks_cpu)
		sy_gone_add(&gone, &parent->others);
	parent->shown_faults = parent->reaped_faults - left;
	parent->children = parent->others = (struct sy_gone){0};
	return gone;
}

/* A root's own I/O is read a moment after the sum that it is taken off, and may have grown by then:
 * what seems to be missing of children it has waited for is told at its end, too. */
static void keep_of_root(struct sy_processes *all, struct sy_process *root,
			 const struct sy_usage *missing)
{
	bool told = tells_at_its_end(all, root);

	for (int i = 0; i < SY_USES; i++) {
		bool beside = told || (i != SY_USE_CPU_NS && has_waited(root));

		*(beside ? &root->kept.use[i] : &all->kept.use[i]) += missing->use[i];
	}
}

/* What a parent does not show. A root that could not be asked any more tells it at its end; and a
 * root may have adopted, and waited for, what was orphaned. Returns whether that is to be seen. */
static bool keep(struct sy_processes *all, struct sy_process *parent,
		 const struct sy_usage *missing)
{
	struct sy_process *root = parent->unsure ? root_above(all, parent) : NULL;
	struct sy_gone gone = not_shown(all, parent, missing);

	parent->unsure = false;
	if (parent->root) {
		keep_of_root(all, parent, missing);
		if (parent->gone && !parent->done) /* its final counters may hold them */
			sy_gone_add(&parent->doubtful, &gone);
		else
			sy_gone_add(&all->unwaited, &gone);
	} else if (root) {
		leave_to(root, missing);
		sy_gone_add(&root->others, &gone);
		return true;
	} else {
		sy_usage_add(&all->kept, missing);
		sy_gone_add(&all->unwaited, &gone);
	}
	return false;
}

/* It was read in this sample after it had waited for children that were alive in the one before:
 * they are in its own page faults, and would be looked for twice in those of its heir. */
static void leave_out_shown(struct sy_process *parent)
{
	int64_t left = parent->reaped_faults - parent->reaped_faults_before;
	int64_t grown = left;

	if (sy_gone_are_shown(&parent->children, &left))
		parent->children = (struct sy_gone){0};
	if (sy_gone_are_shown(&parent->others, &left))
		parent->others = (struct sy_gone){0};
	parent->shown_faults += grown - left;
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
	sy_usage_add(&parent->now, &missing); /* its own loss is told with it */
	leave_out_shown(parent);
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
