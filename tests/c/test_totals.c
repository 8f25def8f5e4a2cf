/* What samplers have counted: from their answers and files, and summed over a job's nodes. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

#include "../../plugins/node/job/totals.c"
#include "../../plugins/node/job/totals_files.c"

static const char header[] =
    "unix_s,elapsed_s,cpu_s,memory_bytes,rchar_bytes,energy_j,energy_j:package-0\n";

static void test_totals(void)
{
	struct sy_totals node, other;
	struct sy_job_totals job = {0};
	char text[400];

	ok(sy_totals_from_json(&node, "{\"elapsed_s\":2.5,\"cpu_s\":1,\"max_memory_bytes\":500,"
				      "\"rchar_bytes\":7,\"energy_j\":null}"),
	   "the sampler's answer");
	ok(node.known[SY_CPU_S] && node.value[SY_CPU_S] == 1, "a number");
	ok(node.no_gpus && !node.known[SY_GPU_ENERGY_J], "no word of GPUs: there are none");
	ok(sy_totals_from_json(&other, "{\"gpu_energy_j\":null}") && !other.no_gpus &&
	       !other.known[SY_GPU_ENERGY_J],
	   "GPUs, and nobody knows whose");
	ok(!node.known[SY_ENERGY_J] && !node.known[SY_TX_BYTES], "null, and not there");
	ok(!sy_totals_from_json(&other, "[1]") && !sy_totals_from_json(&other, "{"), "no answer");

	(void)snprintf(text, sizeof(text),
		       "%s1.0,0.0,0,900,0,0,0\n2.0,1.0,0.25,100,8,3.5,3.5\n9,9,9", header);
	ok(sy_totals_from_csv(&other, header, text, true), "a file of samples");
	ok(other.value[SY_CPU_S] == 0.25 && other.value[SY_ENERGY_J] == 3.5,
	   "its last whole line; what was cut short does not count");
	ok(other.known[SY_MAX_MEMORY_BYTES] && other.value[SY_MAX_MEMORY_BYTES] == 900,
	   "the largest memory of all lines");
	sy_job_totals_add(&job, &node);
	sy_job_totals_add(&job, &other);
	is_int(job.nodes_weighed, 2, "two nodes");
	ok(job.sum.value[SY_CPU_S] == 1.25 && job.sum.value[SY_RCHAR_BYTES] == 15, "sums");
	ok(job.sum.value[SY_ELAPSED_S] == 2.5 && job.sum.value[SY_MAX_MEMORY_BYTES] == 900,
	   "the longer and the larger");
	ok(!job.sum.known[SY_ENERGY_J], "unknown on one node: unknown for the job");
	sy_job_totals_add(&job, &other);
	ok(!job.sum.known[SY_ENERGY_J], "and it stays so");

	ok(!sy_totals_from_csv(&other, header, header, true), "a header alone");
	ok(!sy_totals_from_csv(&other, header, "", false), "nothing");
	ok(sy_totals_from_csv(&other, header, "2.0,1.0,,100,8\n", false) &&
	       !other.known[SY_CPU_S] && other.known[SY_RCHAR_BYTES] && !other.known[SY_ENERGY_J],
	   "an empty cell and a short line are unknown");
	ok(!other.known[SY_MAX_MEMORY_BYTES], "memory from a part of the file is unknown");
}

/* Nobody has counted that: a file that its user has changed. */
static void test_no_counts(void)
{
	static const char *const cells[] = {
	    "nan", "inf", "-1", "1e309", "99999999999999999999999", "1e300", "NAN", "-inf"};
	struct sy_totals odd, half = {.known = {[SY_WCHAR_BYTES] = true},
				      .value = {[SY_WCHAR_BYTES] = 9007199254740992.0}};
	struct sy_job_totals job = {0};
	char text[128];

	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		(void)snprintf(text, sizeof(text), "cpu_s,memory_bytes\n%s,%s\n", cells[i],
			       cells[i]);
		ok(sy_totals_from_csv(&odd, text, text, true) && !odd.known[SY_CPU_S] &&
		       !odd.known[SY_MAX_MEMORY_BYTES],
		   "%s is no CPU time, and no memory", cells[i]);
	}
	ok(sy_totals_from_json(&odd, "{\"cpu_s\":-1,\"rchar_bytes\":1e300}") &&
	       !odd.known[SY_CPU_S] && !odd.known[SY_RCHAR_BYTES],
	   "nor in JSON");
	for (int i = 0; i < 2; i++)
		sy_job_totals_add(&job, &half);
	ok(!job.sum.known[SY_WCHAR_BYTES], "nor is a sum that no double tells");
	is_int(job.unknown_on[SY_WCHAR_BYTES], 1, "and it is said");
}

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[300];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	if (file) {
		(void)fputs(header, file);
		(void)fputs(text, file);
		(void)fclose(file);
	}
}

static void test_idle_nodes(void)
{
	struct sy_totals other;
	struct sy_job_totals job = {0};
	char text[400];

	(void)snprintf(text, sizeof(text), "%s2.0,1.0,0.25,900,8,3.5,3.5\n", header);
	ok(sy_totals_from_csv(&other, header, text, true), "a file of samples");
	sy_job_totals_add(&job, &other);
	other = (struct sy_totals){.idle = true};
	other.known[SY_ELAPSED_S] = other.known[SY_ENERGY_J] = true;
	other.value[SY_ENERGY_J] = 4;
	sy_job_totals_add(&job, &other);
	ok(job.sum.known[SY_CPU_S] && job.sum.value[SY_CPU_S] == 0.25 &&
	       job.sum.known[SY_RCHAR_BYTES] && job.sum.value[SY_MAX_MEMORY_BYTES] == 900,
	   "a node without a step adds nothing to what processes use");
	ok(job.sum.known[SY_ENERGY_J] && job.sum.value[SY_ENERGY_J] == 7.5, "but its joules");
	ok(job.nodes_weighed == 2 && job.nodes_idle == 1, "it is weighed, and idle");
	ok(sy_totals_from_csv(&other, "elapsed_s,cpu_s,processes\n", "1.0,,\n", false) &&
	       other.idle,
	   "where nobody was named no processes are counted");
	ok(sy_totals_from_csv(&other, "elapsed_s,cpu_s,processes\n", "1.0,,0\n", false) &&
	       !other.idle,
	   "0 processes are those of a step: its CPU time is not known");
}

static void test_exclusive(void)
{
	static const struct {
		enum sy_exclusive a, b, both;
	} cases[] = {{SY_ALONE, SY_ALONE, SY_ALONE},
		     {SY_ALONE, SY_SHARED, SY_SHARED},
		     {SY_NOT_SAID, SY_SHARED, SY_SHARED},
		     {SY_ALONE, SY_NOT_SAID, SY_NOT_SAID}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sy_job_totals job = {0};
		struct sy_totals node = {.exclusive = cases[i].a};

		sy_job_totals_add(&job, &node);
		node.exclusive = cases[i].b;
		sy_job_totals_add(&job, &node);
		is_int(job.sum.exclusive, cases[i].both, "of two nodes");
	}
}

/* A file that was last written to at `when`. */
static void write_at(const char *dir, const char *name, const char *text, time_t when)
{
	const struct timespec times[2] = {{when, 0}, {when, 0}};
	char path[300];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *file = fopen(path, "w");
	if (!file)
		return;
	(void)fputs(text, file);
	(void)fclose(file);
	(void)utimensat(AT_FDCWD, path, times, 0);
}

/* Of nodes that wrote nothing for long only those count whose record is finished. */
static void test_lost_nodes(void)
{
	static const char samples[] = "elapsed_s,cpu_s,energy_j,processes\n9,8,7,1\n";
	char dir[] = "/tmp/steelyard-test-XXXXXX", path[300];
	struct sy_job_totals job = {0};
	struct sy_other_nodes others = {
	    .folder = dir, .own_node = "own", .since = 100, .fresh = 200, .limit_ms = 1000};

	if (!ok(mkdtemp(dir) != NULL, "a folder"))
		return;
	write_at(dir, "lost.100.csv", samples, 199);
	write_at(dir, "lost.100.json", "{\"complete\":false,\"job\":{\"exclusive\":true}}", 199);
	write_at(dir, "cut.100.csv", samples, 199);
	sy_job_totals_add_others(&job, &others);
	is_int(job.nodes_weighed, 0, "a node that was lost is not weighed, nor one without record");
	write_at(dir, "ended.100.csv", samples, 150);
	write_at(dir, "ended.100.json", "{\"complete\":true,\"job\":{\"exclusive\":true}}", 150);
	sy_job_totals_add_others(&job, &others);
	ok(job.nodes_weighed == 1 && job.sum.value[SY_CPU_S] == 8 && job.sum.exclusive == SY_ALONE,
	   "one whose steps have ended is, and the job was alone there");
	write_at(dir, "lives.100.csv", samples, 200);
	memset(&job, 0, sizeof(job));
	sy_job_totals_add_others(&job, &others);
	ok(job.nodes_weighed == 2 && job.sum.value[SY_CPU_S] == 16 &&
	       job.sum.exclusive == SY_NOT_SAID,
	   "and one that has just written");
	(void)snprintf(path, sizeof(path), "rm -rf %s", dir);
	ok(system(path) == 0, "tidy");
}

/* Of a job that was requeued within seconds its first start's node had ended before we began. */
static void test_requeued(void)
{
	static const char samples[] = "elapsed_s,cpu_s,energy_j,processes\n9,8,7,1\n";
	char dir[] = "/tmp/steelyard-test-XXXXXX", path[300];
	struct sy_job_totals job = {0};
	struct sy_other_nodes others = {
	    .folder = dir, .own_node = "own", .since = 95, .own_start = 105, .limit_ms = 1000};

	if (!ok(mkdtemp(dir) != NULL, "a folder"))
		return;
	write_at(dir, "first.100.csv", samples, 103);
	write_at(dir, "first.100.json", "{\"complete\":true,\"end_unix_s\":103.5}", 103);
	sy_job_totals_add_others(&job, &others);
	is_int(job.nodes_weighed, 0, "the node of an earlier start is not this start's");
	write_at(dir, "beside.104.csv", samples, 104);
	write_at(dir, "beside.104.json", "{\"complete\":false,\"end_unix_s\":null}", 104);
	sy_job_totals_add_others(&job, &others);
	is_int(job.nodes_weighed, 1, "one that goes on is, though it began a second before");
	write_at(dir, "short.104.csv", samples, 105);
	write_at(dir, "short.104.json", "{\"complete\":true,\"end_unix_s\":105.2}", 105);
	memset(&job, 0, sizeof(job));
	sy_job_totals_add_others(&job, &others);
	is_int(job.nodes_weighed, 2, "and one whose only step has just ended");
	(void)snprintf(path, sizeof(path), "rm -rf %s", dir);
	ok(system(path) == 0, "tidy");
}

/* Our own clock was an hour behind when our sampler began, at 3705 by everybody else's. */
static void test_clock_behind(void)
{
	static const char samples[] = "elapsed_s,cpu_s,energy_j,processes\n9,8,7,1\n";
	char dir[] = "/tmp/steelyard-test-XXXXXX", path[300];
	struct sy_job_totals job = {0};
	time_t begun = sy_begun_at(105, 3709, 4.5);
	struct sy_other_nodes others = {.folder = dir,
					.own_node = "own",
					.since = begun - 10,
					.own_start = begun,
					.fresh = 3704,
					.limit_ms = 1000};

	if (!ok(mkdtemp(dir) != NULL, "a folder"))
		return;
	is_int(begun, 3705, "when it began");
	is_int(sy_begun_at(105, 109, 4.5), 105, "by a clock that is right");
	is_int(sy_begun_at(3705, 109, 4.5), 3705, "by one that is ahead");
	write_at(dir, "before.3500.csv", samples, 3600);
	write_at(dir, "before.3500.json", "{\"complete\":true,\"end_unix_s\":3600}", 3600);
	write_at(dir, "beside.3704.csv", samples, 3708);
	write_at(dir, "beside.3704.json", "{\"complete\":false,\"end_unix_s\":null}", 3704);
	sy_job_totals_add_others(&job, &others);
	is_int(job.nodes_weighed, 1, "the node of an earlier start is not this start's");
	(void)snprintf(path, sizeof(path), "rm -rf %s", dir);
	ok(system(path) == 0, "tidy");
}

static void test_files(void)
{
	char dir[] = "/tmp/steelyard-test-XXXXXX", path[300];
	struct sy_job_totals job = {0};
	struct sy_other_nodes others = {
	    .folder = dir, .own_node = "own", .since = 95, .limit_ms = 1000};

	if (!ok(mkdtemp(dir) != NULL, "a folder"))
		return;
	write_file(dir, "own.100.csv", "1,1,100,1,1,1,1\n");
	write_file(dir, "a.b.101.csv", "1,1,2,1,1,1,1\n");
	write_file(dir, "a.b.101.json", "1,1,64,1,1,1,1\n");
	write_file(dir, "c.50.csv", "1,1,32,1,1,1,1\n");
	write_file(dir, ".100.csv", "1,1,16,1,1,1,1\n");
	write_file(dir, "c.1x.csv", "1,1,8,1,1,1,1\n");
	(void)snprintf(path, sizeof(path), "%s/d.100.csv", dir);
	ok(symlink("own.100.csv", path) == 0, "a link");
	(void)snprintf(path, sizeof(path), "%s/e.100.csv", dir);
	ok(mkfifo(path, 0600) == 0, "a pipe");
	json_t *own = sy_starts(dir, "own", ".csv", 1), *none = sy_starts(dir, "b", ".csv", 1);

	is_int(json_integer_value(json_array_get(own, 0)), 100, "the start of a node");
	is_int((long long)json_array_size(none), 0, "none of a node that is not there");
	json_decref(own);
	json_decref(none);
	sy_job_totals_add_others(&job, &others);
	ok(job.nodes_weighed == 1 && job.sum.value[SY_CPU_S] == 2,
	   "the other node of this start; no older one, no link, no pipe, not our own");
	(void)snprintf(path, sizeof(path), "rm -rf %s", dir);
	ok(system(path) == 0, "tidy");
}

int main(void)
{
	test_totals();
	test_no_counts();
	test_idle_nodes();
	test_exclusive();
	test_files();
	test_lost_nodes();
	test_requeued();
	test_clock_behind();
	return done_testing();
}
