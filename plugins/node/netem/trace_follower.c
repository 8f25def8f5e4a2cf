#include "netem/job_conditions.h"

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/json_document.h"
#include "netem/spec/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define LOOK_US 1000000 /* how often it looks whether the condition is still there */

/* The kernel must have what was requested. On failure the link stays as it is. */
static int change_placements(struct sy_condition *condition, const struct sy_netem *spec,
			     struct sy_error *err)
{
	condition->spec = spec;
	for (int i = 0; i < condition->placement_count; i++)
		if (sy_condition_change(condition, &condition->placement[i], err) < 0)
			return -1;
	return 0;
}

static json_t *make_number(bool exists, double value)
{
	return exists ? json_real(value) : json_null();
}

static void record_step(json_t *trace, int64_t number, int64_t due_us, const struct sy_netem *spec)
{
	int64_t late_us = sy_now_us(CLOCK_MONOTONIC) - due_us;
	json_t *steps = json_object_get(trace, "step_log");
	char applied[SY_NETEM_SIZE];

	(void)sy_netem_format(spec, applied);
	(void)json_object_set_new(trace, "steps", json_integer(number + 1));
	if (json_array_size(steps) < SY_TRACE_MOST_TOLD)
		(void)json_array_append_new(
		    steps,
		    json_pack("{s:I, s:f, s:f, s:s, s:o, s:o, s:o}", "number", (json_int_t)number,
			      "unix_s", (double)sy_now_us(CLOCK_REALTIME) / 1e6, "late_s",
			      (double)late_us / 1e6, "applied", applied, "delay_s",
			      make_number(spec->has_delay, (double)spec->delay_us / 1e6),
			      "rate_bit_per_s",
			      make_number(spec->has_rate, (double)spec->rate_bit_per_s), "loss",
			      make_number(spec->has_loss, (double)spec->loss_ppb / SY_WHOLE_PPB)));
	(void)json_object_set_new(trace, "now", json_string(applied));
}

/* Where the steps repeat, the last one only marks the time. */
static bool has_next(const struct sy_condition *condition, int64_t number)
{
	const struct sy_steps *steps = &condition->steps;

	return condition->requested.trace_repeats ? steps->count > 1 : number + 1 < steps->count;
}

static const struct sy_netem *find_spec(const struct sy_condition *condition, int64_t number)
{
	const struct sy_steps *steps = &condition->steps;
	bool repeats = condition->requested.trace_repeats && steps->count > 1;

	return &steps->step[repeats ? number % (steps->count - 1) : number].spec;
}

/* When the next step is due, by a clock that nobody sets; null: never. */
static void record_next(json_t *trace, const struct sy_condition *condition, int64_t number,
			int64_t began_us)
{
	json_t *next = json_null();

	if (has_next(condition, number)) {
		int64_t remaining_us = began_us +
				       sy_steps_find_time(&condition->steps, number + 1) -
				       sy_now_us(CLOCK_MONOTONIC);

		next = json_real((double)(sy_now_us(CLOCK_BOOTTIME) + remaining_us) / 1e6);
	}
	(void)json_object_set_new(trace, "next_boot_s", next);
}

static void record_progress(json_t *trace, const struct sy_condition *condition, int64_t number,
			    int64_t began_us)
{
	record_step(trace, number, began_us + sy_steps_find_time(&condition->steps, number),
		    find_spec(condition, number));
	record_next(trace, condition, number, began_us);
}

/* Not another one of the same name: the next repetition's, or one whose owner undoes it now. */
static bool is_same(const json_t *state, const json_t *own)
{
	return json_equal(json_object_get(state, "watch_pid"), json_object_get(own, "watch_pid")) &&
	       json_equal(json_object_get(state, "start_boot_s"),
			  json_object_get(own, "start_boot_s"));
}

/* Under the lock, so that nobody undoes it meanwhile. False: it is not ours any more. */
static bool make_step(const struct sy_conditions *conditions, struct sy_condition *condition,
		      int64_t number, int64_t began_us)
{
	struct sy_states states = SY_STATES_NONE;
	bool ours = sy_states_open(conditions->request->run_dir, false, &states, NULL) == 0;
	json_t *state = ours ? json_object_get(states.all, conditions->name) : NULL;
	json_t *document = sy_condition_document(state, (size_t)(condition - conditions->item));
	json_t *trace = json_object_get(document, "trace");
	struct sy_error reason = {{0}};

	ours = trace && is_same(state, conditions->document);
	if (ours && change_placements(condition, find_spec(condition, number), &reason) < 0) {
		(void)json_object_set_new(trace, "failed", sy_json_text(reason.text));
		(void)sy_state_save(&states, conditions->name, state, NULL);
		ours = false;
	} else if (ours) {
		record_progress(trace, condition, number, began_us);
		ours = sy_state_save(&states, conditions->name, state, NULL) == 0;
	}
	sy_states_close(&states);
	return ours;
}

/* False: the state or its owner is gone before. What a job has left after all of its processes were
 * killed waits for the next one to be undone: nobody changes it meanwhile. */
static bool wait_until(const struct sy_conditions *conditions, int64_t until_us)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/netem/%s", conditions->request->run_dir,
		       conditions->name);
	for (;;) {
		int64_t remaining_us = until_us - sy_now_us(CLOCK_MONOTONIC);
		struct timespec pause;

		if (remaining_us <= 0)
			return true;
		if (access(path, F_OK) < 0 ||
		    sy_state_find_owner(conditions->document) != SY_OWNER_LIVES)
			return false;
		remaining_us = remaining_us < LOOK_US ? remaining_us : LOOK_US;
		pause = (struct timespec){remaining_us / 1000000, remaining_us % 1000000 * 1000};
		(void)nanosleep(&pause, NULL);
	}
}

/* A node that slept for several steps makes the last of them alone. */
static void follow_steps(const struct sy_conditions *conditions, struct sy_condition *condition,
			 int64_t began_us)
{
	const struct sy_steps *steps = &condition->steps;
	int64_t number = 0;

	while (has_next(condition, number)) {
		if (!wait_until(conditions, began_us + sy_steps_find_time(steps, number + 1)))
			return;
		number = sy_steps_find_due(steps, condition->requested.trace_repeats,
					   sy_now_us(CLOCK_MONOTONIC) - began_us);
		if (!make_step(conditions, condition, number, began_us))
			return;
	}
}

/* The process that started it does not wait for it; no descriptor of that one stays open. */
static void detach_from_parent(void)
{
	sigset_t all;

	(void)setsid();
	(void)chdir("/");
	sy_close_from(0);
	(void)open("/dev/null", O_RDWR);
	(void)dup(0);
	(void)dup(0);
	sigfillset(&all);
	(void)sigprocmask(SIG_UNBLOCK, &all, NULL);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGHUP, SIG_IGN);
}

static int start_follower(const struct sy_conditions *conditions, struct sy_condition *condition,
			  int64_t began_us, struct sy_error *err)
{
	pid_t child = fork();

	if (child < 0)
		return sy_fail_errno(err, errno, "no process can be started to follow the trace");
	if (child > 0)
		return 0;
	detach_from_parent();
	follow_steps(conditions, condition, began_us);
	_exit(0);
}

int sy_conditions_follow(struct sy_conditions *conditions, struct sy_error *err)
{
	int64_t began_us = sy_now_us(CLOCK_MONOTONIC);

	for (int i = 0; i < conditions->count; i++) {
		struct sy_condition *condition = &conditions->item[i];
		json_t *trace = json_object_get(condition->document, "trace");

		if (!trace)
			continue;
		(void)json_object_set_new(trace, "began_boot_s",
					  json_real(sy_now_s(CLOCK_BOOTTIME)));
		record_progress(trace, condition, 0, began_us);
		if (sy_state_save(&conditions->states, conditions->name, conditions->document,
				  err) < 0)
			return -1;
		if (has_next(condition, 0) &&
		    start_follower(conditions, condition, began_us, err) < 0)
			return -1;
	}
	return 0;
}

/* What is not as the trace has it: a step that was due and not made, or not made as requested. */
static int check_end(const json_t *trace, double now_boot_s, struct sy_error *err)
{
	const char *failed = json_string_value(json_object_get(trace, "failed"));
	json_t *next = json_object_get(trace, "next_boot_s");

	if (failed)
		return sy_fail(err, "trace: a step was not made: %s", failed);
	if (!json_is_string(json_object_get(trace, "now")))
		return sy_fail(err, "trace: no step was made, its process was gone");
	if (json_is_number(next) && json_number_value(next) + SY_TRACE_LATE_S < now_boot_s)
		return sy_fail(err,
			       "trace: a step was due %.1f s before the end and was not made: its "
			       "process was gone",
			       now_boot_s - json_number_value(next));
	return 0;
}

/* How long the last line held after it was due; null where the trace was not over, or repeats. */
static void record_hold_time(json_t *document, json_t *trace, double now_boot_s)
{
	json_t *began = json_object_get(trace, "began_boot_s");
	double length_s = json_number_value(json_object_get(trace, "length_s"));
	double held_s = now_boot_s - json_number_value(began) - length_s;

	if (!json_is_real(began) || json_is_true(json_object_get(trace, "repeats")) || held_s <= 0)
		return;
	(void)json_object_set_new(trace, "held_s", json_real(held_s));
	sy_json_note(document,
		     "trace %s was over after %.1f s: what its last line says held for the "
		     "other %.1f s",
		     json_string_value(json_object_get(trace, "name")), length_s, held_s);
}

void sy_conditions_end_steps(json_t *state, double now_boot_s)
{
	struct sy_error reason = {{0}};
	json_t *document, *trace;

	for (size_t i = 0; (document = sy_condition_document(state, i)); i++) {
		trace = json_object_get(document, "trace");
		if (!trace)
			continue;
		record_hold_time(document, trace, now_boot_s);
		if (check_end(trace, now_boot_s, &reason) == 0)
			continue;
		(void)json_object_set_new(document, "valid", json_false());
		(void)json_object_set_new(document, "invalid_reason", sy_json_text(reason.text));
	}
}
