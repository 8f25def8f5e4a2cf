#include "netem/follow.h"

#include "base/clock.h"
#include "base/exec.h"
#include "base/document.h"
#include "netem/build.h"
#include "netem/spec/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOK_US 1000000 /* how often it looks whether the condition is still there */

/* The lines of the file with their loss, for the verdict, and when the last one is due. */
json_t *sy_follow_document(const struct sy_netem *spec, const struct sy_trace *trace)
{
	int32_t least = SY_WHOLE_PPB, most = 0;
	char first[SY_NETEM_SIZE];

	for (int i = 0; i < trace->count; i++) {
		int32_t loss = trace->step[i].spec.loss_ppb;

		least = loss < least ? loss : least;
		most = loss > most ? loss : most;
	}
	(void)sy_netem_format(&trace->step[0].spec, first);
	return json_pack(
	    "{s:s, s:s, s:b, s:i, s:f, s:I, s:s, s:f, s:f, s:[], s:n, s:n, s:n, s:n}", "name",
	    spec->trace, "sha256", trace->sha256, "repeats", spec->trace_repeats, "lines",
	    trace->count, "length_s", (double)trace->step[trace->count - 1].at_us / 1e6, "steps",
	    (json_int_t)0, "first", first, "least_loss", (double)least / SY_WHOLE_PPB, "most_loss",
	    (double)most / SY_WHOLE_PPB, "told", "failed", "began_boot_s", "next_boot_s", "held_s");
}

/* What is asked of the kernel and what it has are put beside each other; the link is as it was when
 * that fails. */
static int change(struct sy_condition *condition, const struct sy_netem *asked, char *applied,
		  struct sy_error *err)
{
	condition->spec = asked;
	(void)sy_netem_format(asked, applied);
	for (int i = 0; i < condition->count; i++)
		if (sy_condition_change(condition, &condition->place[i], err) < 0)
			return -1;
	return 0;
}

static json_t *number_or_null(bool there, double value)
{
	return there ? json_real(value) : json_null();
}

static void tell(json_t *trace, int64_t number, int64_t due_us, const struct sy_netem *spec,
		 const char *applied)
{
	int64_t late_us = sy_now_us(CLOCK_MONOTONIC) - due_us;
	json_t *told = json_object_get(trace, "told");

	(void)json_object_set_new(trace, "steps", json_integer(number + 1));
	if (json_array_size(told) < SY_TRACE_MOST_TOLD)
		(void)json_array_append_new(
		    told,
		    json_pack(
			"{s:I, s:f, s:f, s:s, s:o, s:o, s:o}", "number", (json_int_t)number,
			"unix_s", (double)sy_now_us(CLOCK_REALTIME) / 1e6, "late_s",
			(double)late_us / 1e6, "applied", applied, "delay_s",
			number_or_null(spec->has_delay, (double)spec->delay_us / 1e6),
			"rate_bit_per_s",
			number_or_null(spec->has_rate, (double)spec->rate_bit_per_s), "loss",
			number_or_null(spec->has_loss, (double)spec->loss_ppb / SY_WHOLE_PPB)));
	(void)json_object_set_new(trace, "now", json_string(applied));
}

/* When the next step is due, by a clock that nobody sets; null: never. */
static void tell_next(json_t *trace, const struct sy_trace *table, int64_t number, int64_t left_us)
{
	bool more = json_is_true(json_object_get(trace, "repeats")) ? table->count > 1
								    : number + 1 < table->count;

	(void)json_object_set_new(
	    trace, "next_boot_s",
	    more ? json_real((double)(sy_now_us(CLOCK_BOOTTIME) + left_us) / 1e6) : json_null());
}

static void tell_beginning(json_t *trace, int64_t began_us)
{
	int64_t ago_us = sy_now_us(CLOCK_MONOTONIC) - began_us;

	if (!json_is_real(json_object_get(trace, "began_boot_s")))
		(void)json_object_set_new(
		    trace, "began_boot_s",
		    json_real((double)(sy_now_us(CLOCK_BOOTTIME) - ago_us) / 1e6));
}

/* Where it repeats, its last line only says when. */
static int step_of(const struct sy_trace *table, const json_t *trace, int64_t number)
{
	bool repeats = json_is_true(json_object_get(trace, "repeats"));

	return (int)(repeats && table->count > 1 ? number % (table->count - 1) : number);
}

/* Not another one of the same name: the next repetition's, or one whose owner undoes it now. */
static bool is_same(const json_t *state, const json_t *own)
{
	return json_equal(json_object_get(state, "watch_pid"), json_object_get(own, "watch_pid")) &&
	       json_equal(json_object_get(state, "start_boot_s"),
			  json_object_get(own, "start_boot_s"));
}

/* Under the lock, so that nobody undoes it meanwhile. False: it is not ours any more. */
static bool step(struct sy_condition *condition, const struct sy_trace *table, int64_t number,
		 int64_t began_us)
{
	struct sy_states states = SY_STATES_NONE;
	bool ours = sy_states_open(condition->request->run_dir, false, &states, NULL) == 0;
	json_t *state = ours ? json_object_get(states.all, condition->name) : NULL;
	json_t *trace = json_object_get(state, "trace");
	int index = step_of(table, trace, number);
	char applied[SY_NETEM_SIZE];
	struct sy_error why = {{0}};

	ours = trace && is_same(state, condition->document);
	if (ours && change(condition, &table->step[index].spec, applied, &why) < 0) {
		(void)json_object_set_new(trace, "failed", sy_json_text(why.text));
		(void)sy_state_save(&states, condition->name, state, NULL);
		ours = false;
	} else if (ours) {
		tell(trace, number, began_us + sy_trace_time_us(table, number),
		     &table->step[index].spec, applied);
		tell_beginning(trace, began_us);
		tell_next(trace, table, number,
			  sy_trace_time_us(
			      table, number + (number + 1 < table->count || table->count > 1)) +
			      began_us - sy_now_us(CLOCK_MONOTONIC));
		ours = sy_state_save(&states, condition->name, state, NULL) == 0;
	}
	sy_states_close(&states);
	return ours;
}

/* Until then; false: the state or whose it is are gone before. What a job has left after all of its
 * processes were killed waits for the next one to be undone: nobody changes it meanwhile. */
static bool wait_until(const struct sy_condition *condition, int64_t until_us)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/netem/%s", condition->request->run_dir,
		       condition->name);
	for (;;) {
		int64_t left_us = until_us - sy_now_us(CLOCK_MONOTONIC);
		struct timespec pause;

		if (left_us <= 0)
			return true;
		if (access(path, F_OK) < 0 || sy_state_owner(condition->document) != SY_OWNER_LIVES)
			return false;
		left_us = left_us < LOOK_US ? left_us : LOOK_US;
		pause = (struct timespec){left_us / 1000000, left_us % 1000000 * 1000};
		(void)nanosleep(&pause, NULL);
	}
}

/* A node that slept for several steps makes the last of them alone. */
static void follow(struct sy_condition *condition, const struct sy_trace *table, int64_t began_us)
{
	bool repeats =
	    json_is_true(json_object_get(json_object_get(condition->document, "trace"), "repeats"));
	int64_t number = 0;

	while (step(condition, table, number, began_us) &&
	       (number + 1 < table->count || (repeats && table->count > 1))) {
		if (!wait_until(condition, began_us + sy_trace_time_us(table, number + 1)))
			return;
		number = sy_trace_due(table, repeats, sy_now_us(CLOCK_MONOTONIC) - began_us);
	}
}

/* Nothing of who started it is kept open or waited for. */
static void leave(void)
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

int sy_condition_follow(const struct sy_condition *condition, const struct sy_trace *trace,
			struct sy_error *err)
{
	struct sy_condition copy = *condition;
	pid_t child = fork();

	if (child < 0)
		return sy_fail_errno(err, errno, "no process can be started to follow the trace");
	if (child > 0)
		return 0;
	leave();
	follow(&copy, trace, sy_now_us(CLOCK_MONOTONIC));
	_exit(0);
}

int sy_follow_end(const json_t *state, double now_boot_s, struct sy_netem *spec,
		  struct sy_error *err)
{
	const json_t *trace = json_object_get(state, "trace");
	const char *now = json_string_value(json_object_get(trace, "now"));
	const char *failed = json_string_value(json_object_get(trace, "failed"));
	json_t *next = json_object_get(trace, "next_boot_s");

	if (failed)
		return sy_fail(err, "trace: a step was not made: %s", failed);
	if (!now || sy_netem_parse(now, spec, NULL) < 0)
		return sy_fail(err, "trace: no step was made, its process was gone");
	if (json_is_number(next) && json_number_value(next) + SY_TRACE_LATE_S < now_boot_s)
		return sy_fail(err,
			       "trace: a step was due %.1f s before the end and was not made: its "
			       "process was gone",
			       now_boot_s - json_number_value(next));
	return 0;
}

void sy_follow_held(json_t *state, double now_boot_s)
{
	json_t *trace = json_object_get(state, "trace");
	json_t *began = json_object_get(trace, "began_boot_s");
	double length_s = json_number_value(json_object_get(trace, "length_s"));
	double held_s = now_boot_s - json_number_value(began) - length_s;

	if (!json_is_real(began) || json_is_true(json_object_get(trace, "repeats")) || held_s <= 0)
		return;
	(void)json_object_set_new(trace, "held_s", json_real(held_s));
	sy_json_note(state,
		     "trace %s was over after %.1f s: what its last line says held for the "
		     "other %.1f s",
		     json_string_value(json_object_get(trace, "name")), length_s, held_s);
}
