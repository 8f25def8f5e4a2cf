/* Traces of a link: files that are read, files that are refused, and what is due when. */
#include "tap.h"

#include "netem/job_conditions.h"
#include "netem/spec/spec.h"
#include "netem/trace.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/steelyard-trace-XXXXXX";
static char path[64];

static int read_trace(const char *text, struct sy_steps *trace, struct sy_error *err)
{
	FILE *file = fopen(path, "w");
	struct sy_netem spec;

	(void)fputs(text, file);
	(void)fclose(file);
	(void)chmod(path, 0644);
	(void)sy_netem_parse("trace=wan,to=10.0.0.1,corrupt=1%", &spec, err);
	return sy_trace_read(folder, &spec, trace, err);
}

static void is_step(const struct sy_steps *trace, int number, int64_t at_us, const char *text)
{
	char found[SY_NETEM_SIZE];

	is_int(trace->step[number].at_us, at_us, "when");
	(void)sy_netem_format(&trace->step[number].spec, found);
	is_string(found, text, "what");
}

static void test_reading(void)
{
	struct sy_error err = {{0}};
	struct sy_steps trace;

	ok(read_trace("# a comment\ntime_s,delay_ms,rate_mbit,loss_percent\n0,10,1.5,0\r\n"
		      "0.5,20.25,100,0.1\n\n60,0,0.008,100\n",
		      &trace, &err) == 0,
	   "read%s", err.text);
	is_int(trace.count, 3, "lines");
	is_string(trace.sha256, "0172a2703d3398ec3b39312b4fdd6e558bd66ea013dda0e5be0d35ff70f9f0d3",
		  "which file it was, as sha256sum says");
	is_step(&trace, 0, 0, "delay=10ms,loss=0%,corrupt=1%,rate=1500kbit,to=10.0.0.1");
	is_step(&trace, 1, 500000, "delay=20250us,loss=0.1%,corrupt=1%,rate=100mbit,to=10.0.0.1");
	is_step(&trace, 2, 60000000, "delay=0,loss=100%,corrupt=1%,rate=8kbit,to=10.0.0.1");
	sy_steps_free(&trace);
	ok(read_trace("rate_mbit,time_s\n1,0\n2,1\n", &trace, &err) == 0, "columns as they come");
	is_step(&trace, 1, 1000000, "corrupt=1%,rate=2mbit,to=10.0.0.1");
	sy_steps_free(&trace);
}

static void test_refusals(void)
{
	static const struct {
		const char *text, *reason;
	} rows[] = {
	    {"", "expected lines of numbers"},
	    {"time_s,delay_ms\n", "expected lines of numbers"},
	    {"0,10\n", "line 1: expected columns time_s, delay_ms, rate_mbit, loss_percent"},
	    {"time_s,delay_ms,delay_ms\n", "each once"},
	    {"time_s\n0\n", "line 1: expected a first line with time_s and at least one of"},
	    {"time_s,delay_ms\n1,10\n", "line 2: expected the first time_s to be 0"},
	    {"time_s,delay_ms\n0,10\n0.05,10\n", "line 3: expected a time_s at least 0.1 after"},
	    {"time_s,delay_ms\n0\n", "line 2: expected 2 numbers"},
	    {"time_s,delay_ms\n0,1,2\n", "line 2: expected 2 numbers"},
	    {"time_s,delay_ms\n0,-1\n", "line 2: a time cannot be negative"},
	    {"time_s,loss_percent\n0,101\n", "line 2: expected a percentage from 0% to 100%"},
	    {"time_s,rate_mbit\n0,0\n", "line 2: expected whole bytes a second"},
	};
	struct sy_error err;
	struct sy_steps trace;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ok(read_trace(rows[i].text, &trace, &err) < 0 && strstr(err.text, rows[i].reason),
		   "refused, %s: %s", rows[i].reason, err.text);
	(void)chmod(path, 0666);
	(void)unlink(path);
	ok(symlink("/dev/null", path) == 0, "a link");
	ok(sy_trace_read(folder, &(struct sy_netem){.trace = "wan"}, &trace, &err) < 0, "refused");
	(void)unlink(path);
}

static void test_what_is_due(void)
{
	struct sy_step steps[] = {{.at_us = 0}, {.at_us = 1000}, {.at_us = 3000}};
	struct sy_steps trace = {.count = 3, .step = steps};

	is_int(sy_steps_find_due(&trace, false, 0), 0, "the first");
	is_int(sy_steps_find_due(&trace, false, 999), 0, "still");
	is_int(sy_steps_find_due(&trace, false, 1000), 1, "the second");
	is_int(sy_steps_find_due(&trace, false, 99000), 2, "the last is held");
	is_int(sy_steps_find_due(&trace, true, 2999), 1, "of a round");
	is_int(sy_steps_find_due(&trace, true, 3000), 2, "the next one begins");
	is_int(sy_steps_find_due(&trace, true, 7500), 5, "and goes on");
	is_int(sy_steps_find_time(&trace, 2), 3000, "when the second round begins");
	is_int(sy_steps_find_time(&trace, 5), 7000, "and its third's second step");
}

static void is_ended(json_t *state, double now_boot_s, const char *reason)
{
	const char *found;

	(void)json_object_del(state, "invalid_reason");
	sy_conditions_end_steps(state, now_boot_s);
	found = json_string_value(json_object_get(state, "invalid_reason"));
	if (reason)
		ok(found && strstr(found, reason) && json_is_false(json_object_get(state, "valid")),
		   "invalid, %s: %s", reason, found ? found : "no reason");
	else
		ok(!found, "as the trace has it%s", found ? found : "");
}

/* What the state has at the end of the process that followed it. */
static void test_the_end(void)
{
	struct sy_netem spec = {0};
	json_t *state = json_pack("{s:{s:s, s:n, s:f}}", "trace", "now", "delay=20ms", "failed",
				  "next_boot_s", 100.0);
	json_t *trace = json_object_get(state, "trace");

	ok(sy_condition_read_spec(state, &spec) == 0 && spec.delay_us == 20000,
	   "the last step is what holds");
	is_ended(state, 100.5, NULL);
	is_ended(state, 103,
		 "trace: a step was due 3.0 s before the end and was not made: its process was "
		 "gone");
	(void)json_object_set_new(trace, "next_boot_s", json_null());
	is_ended(state, 1e9, NULL);
	(void)json_object_set_new(trace, "failed", json_string("tc refused"));
	is_ended(state, 100, "tc refused");
	(void)json_object_del(trace, "failed");
	(void)json_object_del(trace, "now");
	is_ended(state, 100, "no step was made");
	json_decref(state);
}

/* FIPS 180-2, appendix B, and what fills its last block to the end. */
static void test_sums(void)
{
	static const struct {
		size_t length;
		const char *sum;
	} rows[] = {
	    {0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	    {3, "9834876dcfb05cb167a5c24953eba58c4ac89b1adf57f28f2f9d09af107ee8f0"},
	    {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
	    {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
	    {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
	    {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
	    {119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"},
	    {120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"},
	    {1000, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"},
	};
	char letters[1000], sum[SY_SHA256_SIZE];

	is_string(sy_sha256("abc", 3, sum),
		  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "abc");
	memset(letters, 'a', sizeof(letters));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		is_string(sy_sha256(letters, rows[i].length, sum), rows[i].sum,
			  "so many of a letter");
}

/* How long the last line held, once the trace was over. */
static void test_what_was_held(void)
{
	json_t *state =
	    json_pack("{s:{s:s, s:s, s:b, s:f, s:f, s:n}}", "trace", "now", "delay=20ms", "name",
		      "wan", "repeats", 0, "length_s", 60.0, "began_boot_s", 100.0, "held_s");
	json_t *trace = json_object_get(state, "trace");

	sy_conditions_end_steps(state, 159);
	ok(json_is_null(json_object_get(trace, "held_s")), "nothing before its end");
	sy_conditions_end_steps(state, 170.5);
	ok(json_number_value(json_object_get(trace, "held_s")) == 10.5, "after it the rest");
	is_string(
	    json_string_value(json_array_get(json_object_get(state, "notes"), 0)),
	    "trace wan was over after 60.0 s: what its last line says held for the other 10.5 s",
	    "as a note");
	(void)json_object_set_new(trace, "held_s", json_null());
	(void)json_object_set_new(trace, "repeats", json_true());
	sy_conditions_end_steps(state, 170.5);
	ok(json_is_null(json_object_get(trace, "held_s")), "one that begins again is never over");
	json_decref(state);
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	(void)snprintf(path, sizeof(path), "%s/wan.csv", folder);
	test_reading();
	test_refusals();
	test_what_is_due();
	test_the_end();
	test_sums();
	test_what_was_held();
	(void)rmdir(folder);
	return done_testing();
}
