/* The parts of the Slurm plugin that know no Slurm: grammar, configuration, AdminComment.
 */
#include <stdlib.h>
#include <unistd.h>

#include "tap.h"

#include "../../plugins/node/job/comment.c"
#include "../../plugins/node/job/job_options.c"
#include "../../plugins/slurm/config.c"
#include "../../plugins/slurm/job_cgroup.c"
#include "base/samples.h"

static char *format_comment(const struct sy_comment *comment)
{
	char *text = sy_comment_text(comment);

	ok(text != NULL, "a comment");
	return text;
}

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
	static char tiny[310] = "0.";
	static const char *const bad[] = {"",	   "-1",  "+1",	    " 1",     "1 ",
					  "1e3",   "0x1", "inf",    "nan",    "1.2.3",
					  "100.1", ".",	  "0.0009", "1e-301", tiny};
	struct sy_error err;
	double hz = 7;

	memset(tiny + 2, '0', 300);
	tiny[302] = '1';
	ok(sy_rate_parse("0", 100, &hz, &err) == 0 && hz == 0, "0 Hz: off");
	ok(sy_rate_parse("0.5", 100, &hz, &err) == 0 && hz == 0.5, "half a Hz");
	ok(sy_rate_parse("0.001", 100, &hz, &err) == 0 && hz == 0.001, "the lowest");
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
	is_string(config.node.record_dir, "/r", "record_dir");
	is_string(config.node.run_dir, "/s", "run_dir");
	is_string(config.node.node_program, "/p", "node_program");
	ok(config.node.rate_hz == 2.5 && config.node.max_rate_hz == 10 && !config.admin_comment,
	   "the rest");
	sy_config_parse(&config, 5, bad, count_complaint);
	is_int(complaints, 5, "one complaint for each faulty argument");
	ok(strstr(last_complaint, "unknown argument 'ratex=1'") != NULL, "it names the argument");
	is_string(config.node.record_dir, "/var/lib/steelyard/records",
		  "a faulty one leaves the default");
	ok(config.node.rate_hz == 1 && config.admin_comment, "the others too");
}

/* Values of the whole node, and whether they are reported. */
static void test_comment_scope(void)
{
	static struct sy_tags tags;
	struct sy_totals totals = {.no_gpus = false};
	struct sy_comment comment = {.tags = &tags, .nodes = 2, .totals = &totals};
	char *text;

	for (int i = 0; i < SY_TOTALS; i++) {
		totals.known[i] = i != SY_CPU_S;
		totals.value[i] = 1000 + i;
	}
	text = format_comment(&comment);
	ok(strstr(text, "\"nodes\":2,\"nodes_measured\":1,\"partial\":true,\"elapsed_s\":1000.0,"
			"\"energy_j\":null,\"gpu_energy_j\":1002.0,\"cpu_s\":null,") &&
	       strstr(text, "\"rx_bytes\":null,\"tx_bytes\":null,") &&
	       strstr(text,
		      "\"exclusive\":null,\"missing\":{"
		      "\"energy_j\":\"of the whole node; not known whether the job was alone\","
		      "\"cpu_s\":\"not known on 1 of 1 nodes\","),
	   "nothing of the whole node is told of a job that may have shared it: %s", text);
	free(text);
	totals.exclusive = SY_SHARED;
	sy_node_kind_from_record(&comment.kind, "{\"missing\":{\"cpu.cpu_s\":\"no\"}}");
	text = format_comment(&comment);
	ok(strstr(text, "\"energy_j\":null") && strstr(text, "\"exclusive\":false") &&
	       strstr(text, "\"energy_j\":\"of the whole node, which the job shared\"") &&
	       strstr(text, "\"cpu_s\":\"no\""),
	   "nor of one that did; the record's reason is the better one");
	free(text);
	totals.exclusive = SY_ALONE;
	totals.known[SY_CPU_S] = true;
	text = format_comment(&comment);
	ok(strstr(text, "\"energy_j\":1001.0,") && strstr(text, "\"tx_bytes\":1013,") &&
	       strstr(text, "\"exclusive\":true,\"energy_scope\":\"node\","
			    "\"network_scope\":\"node\""),
	   "of one alone it is, with its scope");
	free(text);
	totals.unseen = true;
	text = format_comment(&comment);
	ok(strstr(text, "\"wchar_bytes\":\"not all processes were seen (cpu_unseen_s)\"") &&
	       !strstr(text, "\"cpu_s\":null"),
	   "bytes of processes that only their cgroup shows are not known");
	free(text);
	totals.unseen = false;
	totals.known[SY_CPU_UNSEEN_S] = false;
	text = format_comment(&comment);
	ok(strstr(text, "\"cpu_unseen_s\":null") &&
	       strstr(text, "\"cpu_unseen_s\":\"no cgroup: none counts the CPU of all processes\""),
	   "where there is none it cannot be known what is missing");
	free(text);
}

static void test_idle_node(void)
{
	static struct sy_tags tags;
	struct sy_totals totals = {.idle = true, .exclusive = SY_ALONE};
	struct sy_comment comment = {.tags = &tags, .nodes = 1, .totals = &totals};
	char *text;

	totals.known[SY_ENERGY_J] = totals.known[SY_CPU_S] = true;
	totals.value[SY_ENERGY_J] = 4;
	text = format_comment(&comment);
	ok(strstr(text, "\"nodes_measured\":1,\"nodes_idle\":1,") &&
	       strstr(text, "\"energy_j\":4.0,") && strstr(text, "\"cpu_s\":null,") &&
	       strstr(text, "\"cpu_s\":\"no step of the job was on any node\""),
	   "a node that no step came to has its joules, and no processes of the job: %s", text);
	free(text);
}

static void test_comment_of_gpus(void)
{
	static struct sy_tags tags;
	struct sy_totals totals = {.no_gpus = false};
	struct sy_comment comment = {.tags = &tags, .nodes = 1, .totals = &totals};
	char *text;

	sy_node_kind_from_record(&comment.kind,
				 "{\"missing\":{\"energy.gpu_energy_j\":\"" SY_NOT_YET
				 "\",\"energy.gpus.of_job\":\"two orders\"}}");
	text = format_comment(&comment);
	ok(strstr(text, "\"gpu_energy_j\":null,") &&
	       strstr(text, "\"gpu_energy_j\":\"two orders\""),
	   "GPUs whose owner is not known: null, with the reason that the record begins with");
	free(text);
	totals.no_gpus = true;
	text = format_comment(&comment);
	ok(!strstr(text, "gpu_energy_j"), "a node without GPUs says nothing of them");
	free(text);
}

/* Of the tags k, t00, t01, … as many as fit. */
static void check_left_out(const char *text)
{
	const char *left_out = text ? strstr(text, "\"tags_left_out\":") : NULL;
	char item[16];
	int included = 1;

	for (int i = 0; text && i < SY_TAGS_MAX; i++) {
		(void)snprintf(item, sizeof(item), "\"t%02d\":", i);
		included += strstr(text, item) != NULL;
	}
	ok(left_out && included + atoi(left_out + 16) == SY_TAGS_MAX,
	   "and how many is told: %d of %d", included, SY_TAGS_MAX);
}

static void test_comment(void)
{
	static struct sy_tags tags;
	struct sy_totals totals = {.no_gpus = false};
	struct sy_comment comment = {.tags = &tags, .nodes = 2, .totals = &totals};
	static const char expected[] =
	    "{\"steelyard\":1,\"node_type\":\"virtual\",\"vm\":\"kvm\",\"container\":null,"
	    "\"kernel\":\"6.1\",\"tags\":{\"k\":\"say \\\"hi\\\"\"},\"nodes\":2,"
	    "\"nodes_measured\":1,\"partial\":true,\"elapsed_s\":null,\"energy_j\":0.0,\"cpu_s\":0."
	    "3,"
	    "\"cpu_unseen_s\":0.0,\"max_memory_bytes\":0,\"rchar_bytes\":0,\"wchar_bytes\":0,"
	    "\"read_bytes\":0,\"write_bytes\":0,\"rx_bytes\":9007199254740992,\"tx_bytes\":0,";
	char item[SY_TAG_VALUE_MAX + 32];
	char *text;

	sy_node_kind_from_record(&comment.kind,
				 "{\"probe\":{\"node_type\":\"virtual\",\"virtualization\":{\"vm\":"
				 "{\"name\":\"kvm\"},\"container\":{\"name\":null}},\"kernel\":"
				 "{\"release\":\"6.1\"}}}");
	for (int i = 0; i < SY_TOTALS; i++)
		totals.known[i] = i != SY_ELAPSED_S;
	totals.exclusive = SY_ALONE;
	totals.no_gpus = true;
	totals.value[SY_CPU_S] = 0.1 + 0.2;
	totals.value[SY_RX_BYTES] = 9007199254740992.0;
	(void)sy_tags_add(&tags, "k=say \"hi\"", NULL);
	text = format_comment(&comment);
	ok(!strncmp(text, expected, strlen(expected)) &&
	       strstr(text, "\"exclusive\":true,\"energy_scope\":\"node\","
			    "\"network_scope\":\"node\",") &&
	       strstr(text, "\"missing\":{\"elapsed_s\":\"not known on 1 of 1 nodes\"}}"),
	   "one line of JSON, null for what is not known: %s", text);
	free(text);
	for (int i = 0; i < SY_TAGS_MAX; i++) {
		(void)snprintf(item, sizeof(item), "t%02d=%0*d", i, SY_TAG_VALUE_MAX, i);
		(void)sy_tags_add(&tags, item, NULL);
	}
	comment.nodes = -1;
	text = format_comment(&comment);
	ok(text && strlen(text) <= SY_COMMENT_MAX && strlen(text) > SY_COMMENT_MAX - 300,
	   "as many tags as fit in %d bytes", SY_COMMENT_MAX);
	ok(text && strstr(text, "\"t00\":") && !strstr(text, "\"t31\":") &&
	       strstr(text, "tx_bytes"),
	   "the last tags are left out, nothing else");
	check_left_out(text);
	ok(text && strstr(text, "\"nodes\":null"), "nodes not known");
	free(text);
	sy_node_kind_from_record(&comment.kind, "cut sho");
	is_string(comment.kind.node_type, "", "a record that is none");
}

/* Recorded texts of /proc/PID/cgroup (tests/data/cgroups): what is the job's, and the way out. */
#define SCOPE "/system.slice/layout_slurmstepd.scope"
static const struct layout {
	const char *name, *job, *egress;
} layouts[] = {
    {"22.05-v1", "/slurm_layout/uid_4711/job_1", "/sys/fs/cgroup/freezer/slurm_layout"},
    {"24.11-v1", "/slurm_layout/uid_4711/job_1", "/sys/fs/cgroup/freezer/slurm_layout"},
    {"26.05-v1", "/slurm_layout/uid_4711/job_1", "/sys/fs/cgroup/freezer/slurm_layout"},
    {"22.05-v2", SCOPE "/job_1", "/sys/fs/cgroup" SCOPE "/system"},
    {"24.11-v2", SCOPE "/job_1", "/sys/fs/cgroup" SCOPE "/system"},
    {"26.05-v2", SCOPE "/s4HNM82QZQES00", "/sys/fs/cgroup" SCOPE "/system"},
    {"26.05-v2-ids", SCOPE "/job_1", "/sys/fs/cgroup" SCOPE "/system"},
    {"22.05-none", NULL, NULL},
    {"24.11-none", NULL, NULL},
    {"26.05-none", NULL, NULL},
};

static const char *recorded(const char *layout, const char *whose)
{
	static char text[4096];
	char path[128];
	FILE *file;
	size_t length = 0;

	(void)snprintf(path, sizeof(path), "tests/data/cgroups/%s/%s", layout, whose);
	file = fopen(path, "r");
	if (file) {
		length = fread(text, 1, sizeof(text) - 1, file);
		(void)fclose(file);
	}
	text[length] = '\0';
	ok(length > 0, "%s can be read", path);
	return text;
}

static void check_job_cgroup(const char *cgroups, const char *expected, const char *layout,
			     const char *whose)
{
	size_t length = 0;
	const char *found = sy_job_cgroup_find(cgroups, 1, &length);
	char path[256], what[128];

	(void)snprintf(path, sizeof(path), "%.*s", (int)length, found ? found : "");
	(void)snprintf(what, sizeof(what), "%s: the job's cgroup, from %s", layout, whose);
	is_string(path, expected ? expected : "", what);
}

static void test_cgroup_layouts(void)
{
	static struct sy_egress way;

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		const struct layout *at = &layouts[i];
		bool by_id = at->job && strstr(at->job, "/job_1");
		char what[128], expected[256] = "";

		check_job_cgroup(recorded(at->name, "stepd"), at->job, at->name, "slurmstepd");
		check_job_cgroup(recorded(at->name, "task"), by_id ? at->job : NULL, at->name,
				 "a task");
		sy_egress_read(&way, recorded(at->name, "stepd"), sy_egress_from_slurm);
		(void)snprintf(what, sizeof(what), "%s: the way out", at->name);
		if (at->egress)
			(void)snprintf(expected, sizeof(expected), "%s/cgroup.procs", at->egress);
		is_string(way.count > 0 ? way.paths[0] : "", expected, what);
	}
}

/* A slurmd that runs in a job of another cluster's, and makes no cgroups itself. */
static void test_cluster_in_a_job(void)
{
	check_job_cgroup(
	    "0::/system.slice/slurmstepd.scope/sEKNKTV3WPV500/step_batch/user/task_0\n", NULL,
	    "version 2", "a cluster within another's job");
	check_job_cgroup("0::/system.slice/slurmstepd.scope/job_55/step_batch/user/task_0\n", NULL,
			 "version 2, job ids", "a cluster within another's job");
	check_job_cgroup("5:cpu,cpuacct:/slurm_n1/uid_0/job_55/step_batch/task_0\n0::/\n", NULL,
			 "version 1", "a cluster within another's job");
}

static void test_cgroups(void)
{
	static struct sy_egress way;
	size_t length;

	ok(!sy_job_cgroup_find("4:cpu:/slurm/uid_0/job_55/step_0\n0::/\n", 5, &length),
	   "another job's");
	ok(sy_job_cgroup_find("0::/slurmstepd.scope/job_5", 5, &length) && length == 23,
	   "at the text's end");
	ok(!sy_job_cgroup_find("4:cpu:/sEKNKTV3WPV500/step_0/slurm\n", 5, &length),
	   "version 1 has no SLUIDs");
	sy_egress_read(&way,
		       "5:cpu,cpuacct:/slurm_n1/uid_0/job_5/step_extern\n"
		       "4:name=systemd:/slurm_n1/uid_0/job_5/step_extern\n"
		       "3:pids:/\n",
		       sy_egress_from_slurm);
	is_int((int64_t)way.count, 2, "only where it is in a job's group");
	is_string(way.paths[1], "/sys/fs/cgroup/systemd/slurm_n1/cgroup.procs", "a named one");
}

int main(void)
{
	test_tag_grammar();
	test_tag_list();
	test_rate();
	test_config();
	test_comment_scope();
	test_idle_node();
	test_comment_of_gpus();
	test_comment();
	test_cgroup_layouts();
	test_cluster_in_a_job();
	test_cgroups();
	return done_testing();
}
