/* The parts of the Slurm plugin that know no Slurm: grammar, configuration, totals, AdminComment.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

#include "../../plugins/slurm/comment.c"
#include "../../plugins/slurm/config.c"
#include "../../plugins/slurm/escape.c"
#include "../../plugins/slurm/tag.c"
#include "../../plugins/slurm/totals.c"
#include "../../plugins/slurm/totals_files.c"

static void test_tag_grammar(void)
{
	static const char *const good[] = {"a=1",	 "A.b_c-9=x", "k=v=w", "net=delay 50ms",
					   "k=\"'\\{}~", "k= "};
	static const char *const bad[] = {"",
					  "=",
					  "=v",
					  "k",
					  "k=",
					  "1k=v",
					  "-k=v",
					  "k k=v",
					  "k=a\nb",
					  "k=\x1f",
					  "k=caf\xc3\xa9",
					  "\xc3=v"};
	char longest[SY_TAG_KEY_MAX + SY_TAG_VALUE_MAX + 3];
	struct sy_error err;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ok(sy_tag_check(good[i], &err) == 0, "a tag: %s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(sy_tag_check(bad[i], &err) < 0 && strstr(err.text, "expected KEY=VALUE"),
		   "no tag, number %zu", i);
	memset(longest, 'a', sizeof(longest));
	longest[SY_TAG_KEY_MAX] = '=';
	longest[SY_TAG_KEY_MAX + 1 + SY_TAG_VALUE_MAX] = '\0';
	ok(sy_tag_check(longest, &err) == 0, "the longest key and value");
	ok(sy_tag_check(longest + 1, &err) == 0, "a key of 63");
	longest[SY_TAG_KEY_MAX + 1 + SY_TAG_VALUE_MAX] = 'a';
	longest[SY_TAG_KEY_MAX + 2 + SY_TAG_VALUE_MAX] = '\0';
	ok(sy_tag_check(longest, &err) < 0, "a value of 257");
	longest[SY_TAG_KEY_MAX] = 'a';
	longest[SY_TAG_KEY_MAX + 1] = '=';
	ok(sy_tag_check(longest, &err) < 0, "a key of 65");
}

static void test_tag_list(void)
{
	static struct sy_tags tags, back;
	char text[200], item[16];
	struct sy_error err;

	ok(sy_tags_add(&tags, "a=1", &err) == 0 && sy_tags_add(&tags, "ab=2", &err) == 0 &&
	       sy_tags_add(&tags, "a=3", &err) == 0,
	   "tags are added");
	is_int((int64_t)tags.count, 2, "the same key counts once");
	is_string(tags.items[0], "a=3", "its last value counts");
	is_int(sy_tags_join(&tags, text, sizeof(text)), 8, "joined");
	sy_tags_add_joined(&back, text);
	sy_tags_add_joined(&back, "\x1f\x1f"
				  "faulty\x1f"
				  "c=4");
	is_int((int64_t)back.count, 3, "taken apart, faulty ones left out");
	is_string(back.items[1], "ab=2", "in their order");
	is_int(sy_tags_join(&tags, text, 8), -1, "too little room is said");
	for (int i = 0; i < SY_TAGS_MAX; i++) {
		(void)snprintf(item, sizeof(item), "k%d=v", i);
		(void)sy_tags_add(&tags, item, NULL);
	}
	is_int((int64_t)tags.count, SY_TAGS_MAX, "no more than fit");
	ok(sy_tags_add(&tags, "more=1", &err) < 0, "one more is refused");
	ok(sy_tags_add(&tags, "a=5", &err) == 0, "a new value for an old key is not");
}

static void test_rate(void)
{
	static const char *const bad[] = {"",	 "-1",	"+1",  " 1",	"1 ",	 "1e3",
					  "0x1", "inf", "nan", "1.2.3", "100.1", "."};
	struct sy_error err;
	double hz = 7;

	ok(sy_rate_parse("0", 100, &hz, &err) == 0 && hz == 0, "0 Hz: off");
	ok(sy_rate_parse("0.5", 100, &hz, &err) == 0 && hz == 0.5, "half a Hz");
	ok(sy_rate_parse("100", 100, &hz, &err) == 0 && hz == 100, "the highest");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(sy_rate_parse(bad[i], 100, &hz, &err) < 0 && hz == 100, "no rate: '%s'", bad[i]);
}

static int complaints;
static char last_complaint[1024];

static void count_complaint(const char *sentence)
{
	complaints++;
	(void)snprintf(last_complaint, sizeof(last_complaint), "%s", sentence);
}

static void test_config(void)
{
	char *good[] = {(char *)"record_dir=/r", (char *)"run_dir=/s",	(char *)"node_program=/p",
			(char *)"rate=2.5",	 (char *)"max_rate=10", (char *)"admin_comment=no"};
	char *bad[] = {(char *)"record_dir=r", (char *)"rate=fast", (char *)"admin_comment=1",
		       (char *)"colour=red", (char *)"ratex=1"};
	struct sy_config config;

	sy_config_parse(&config, 6, good, count_complaint);
	is_int(complaints, 0, "no complaint about good arguments");
	is_string(config.record_dir, "/r", "record_dir");
	is_string(config.run_dir, "/s", "run_dir");
	is_string(config.node_program, "/p", "node_program");
	ok(config.rate_hz == 2.5 && config.max_rate_hz == 10 && !config.admin_comment, "the rest");
	sy_config_parse(&config, 5, bad, count_complaint);
	is_int(complaints, 5, "one complaint for each faulty argument");
	ok(strstr(last_complaint, "unknown argument 'ratex=1'") != NULL, "it names the argument");
	is_string(config.record_dir, "/var/lib/steelyard/records",
		  "a faulty one leaves the default");
	ok(config.rate_hz == 1 && config.admin_comment, "the others too");
}

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

static void test_files(void)
{
	char dir[] = "/tmp/steelyard-test-XXXXXX", path[300];
	struct sy_job_totals job = {0};

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
	is_int(sy_newest_start(dir, "own", ".csv"), 100, "the newest start of a node");
	is_int(sy_newest_start(dir, "b", ".csv"), 0, "none of a node that is not there");
	sy_job_totals_add_others(&job, dir, "own", 95, 1000);
	ok(job.nodes_weighed == 1 && job.sum.value[SY_CPU_S] == 2,
	   "the other node of this start; no older one, no link, no pipe, not our own");
	(void)snprintf(path, sizeof(path), "rm -rf %s", dir);
	ok(system(path) == 0, "tidy");
}

static void test_comment(void)
{
	static struct sy_tags tags;
	struct sy_job_totals totals = {.nodes_weighed = 1};
	struct sy_comment comment = {.tags = &tags, .nodes = 2, .totals = &totals};
	char item[SY_TAG_VALUE_MAX + 32];
	char *text;

	sy_node_kind_from_record(&comment.kind,
				 "{\"probe\":{\"node_type\":\"virtual\",\"virtualization\":{\"vm\":"
				 "{\"name\":\"kvm\"},\"container\":{\"name\":null}},\"kernel\":"
				 "{\"release\":\"6.1\"}}}");
	totals.sum.known[SY_CPU_S] = true;
	totals.sum.value[SY_CPU_S] = 0.1 + 0.2;
	totals.sum.known[SY_RX_BYTES] = true;
	totals.sum.value[SY_RX_BYTES] = 9007199254740992.0;
	(void)sy_tags_add(&tags, "k=say \"hi\"", NULL);
	text = sy_comment_text(&comment);
	is_string(text,
		  "{\"steelyard\":1,\"node_type\":\"virtual\",\"vm\":\"kvm\",\"container\":null,"
		  "\"kernel\":\"6.1\",\"tags\":{\"k\":\"say \\\"hi\\\"\"},\"nodes\":2,"
		  "\"nodes_weighed\":1,\"elapsed_s\":null,\"energy_j\":null,\"cpu_s\":0.3,"
		  "\"max_memory_bytes\":null,\"rchar_bytes\":null,\"wchar_bytes\":null,"
		  "\"read_bytes\":null,\"write_bytes\":null,\"rx_bytes\":9007199254740992,"
		  "\"tx_bytes\":null}",
		  "one line of JSON, null for what is not known");
	free(text);
	for (int i = 0; i < SY_TAGS_MAX; i++) {
		(void)snprintf(item, sizeof(item), "t%02d=%0*d", i, SY_TAG_VALUE_MAX, i);
		(void)sy_tags_add(&tags, item, NULL);
	}
	comment.nodes = -1;
	text = sy_comment_text(&comment);
	ok(text && strlen(text) <= SY_COMMENT_MAX && strlen(text) > SY_COMMENT_MAX - 300,
	   "as many tags as fit in %d bytes", SY_COMMENT_MAX);
	ok(text && strstr(text, "\"t00\":") && !strstr(text, "\"t31\":") &&
	       strstr(text, "tx_bytes"),
	   "the last tags are left out, nothing else");
	ok(text && strstr(text, "\"nodes\":null"), "nodes not known");
	free(text);
	sy_node_kind_from_record(&comment.kind, "cut sho");
	is_string(comment.kind.node_type, "", "a record that is none");
}

static void test_cgroups(void)
{
	static struct sy_escape escape;

	is_int((int64_t)sy_job_cgroup_length("/slurm_n1/uid_0/job_5/step_batch", 5), 21,
	       "version 1");
	is_int((int64_t)sy_job_cgroup_length("/system.slice/slurmstepd.scope/job_5\n0::/", 5), 36,
	       "version 2, at a line's end");
	is_int((int64_t)sy_job_cgroup_length("/slurm/uid_0/job_55/step_0", 5), 0, "another job");
	is_int((int64_t)sy_job_cgroup_length("/user.slice", 5), 0, "no job");
	sy_escape_plan(&escape, "5:cpu,cpuacct:/slurm_n1/uid_0/job_5/step_extern\n"
				"4:name=systemd:/slurm_n1/uid_0/job_5/step_extern\n"
				"3:pids:/\n");
	is_int((int64_t)escape.count, 2, "only where it is in a job's group");
	is_string(escape.paths[0], "/sys/fs/cgroup/cpu,cpuacct/slurm_n1/cgroup.procs", "version 1");
	is_string(escape.paths[1], "/sys/fs/cgroup/systemd/slurm_n1/cgroup.procs", "a named one");
	sy_escape_plan(&escape, "0::/system.slice/slurmstepd.scope/job_5/step_extern/slurm\n");
	is_string(escape.paths[0],
		  "/sys/fs/cgroup/system.slice/slurmstepd.scope/system/cgroup.procs", "version 2");
	sy_escape_plan(&escape, "0::/\n");
	is_int((int64_t)escape.count, 0, "nowhere to go when Slurm uses no cgroups");
}

int main(void)
{
	test_tag_grammar();
	test_tag_list();
	test_rate();
	test_config();
	test_totals();
	test_files();
	test_comment();
	test_cgroups();
	return done_testing();
}
