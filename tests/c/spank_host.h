/* A small host that plays slurmstepd, sbatch and srun for the real spank_steelyard.so: what the
 * plugin may ask of Slurm, and loading a fresh plugin as every process of Slurm's does. */
#ifndef STEELYARD_SPANK_HOST_H
#define STEELYARD_SPANK_HOST_H

#include "tap.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <jansson.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>

#include "../../plugins/slurm/slurm_releases.h"

#define JOB 4711u

static enum spank_context context;
static uint32_t step_id;
static bool slurm_answers = true;
static char last_error[2048], last_info[2048], tags_variable[512];
/* What the program in the place of steelyard-slurmdb does, once it has its request. */
static const char *accounting = "echo 'verbose: written'";
static const char *job_cores; /* of this node; NULL: unknown */
static struct spank_option *options[8];
static job_info_t job = {.partition = (char *)"main", .nodes = (char *)"n8,n9"};
static size_t option_count;
static int errors;

enum spank_context spank_context(void)
{
	return context;
}

spank_err_t spank_option_register(spank_t spank, struct spank_option *option)
{
	(void)spank;
	if (option_count < 8)
		options[option_count++] = option;
	return ESPANK_SUCCESS;
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
	va_list list;
	spank_err_t rc = slurm_answers ? ESPANK_SUCCESS : ESPANK_BAD_ARG;
	uint32_t value = item == S_JOB_ID		  ? JOB
			 : item == S_JOB_STEPID		  ? step_id
			 : item == S_JOB_LOCAL_TASK_COUNT ? 2
							  : 0;

	(void)spank;
	va_start(list, item);
	if (rc != ESPANK_SUCCESS)
		;
	else if (item == S_JOB_ARRAY_TASK_ID)
		*va_arg(list, uint32_t *) = 0xfffffffe;
	else if (item == S_TASK_PID)
		*va_arg(list, pid_t *) = getpid();
	else if (item == S_JOB_ALLOC_CORES)
		*va_arg(list, const char **) = job_cores;
	else
		*va_arg(list, uint32_t *) = value;
	va_end(list);
	return rc;
}

static const char *component_nodes; /* the job is the second component of a heterogeneous one */

/* As Slurm 22.05 sets them in a step over both. */
static const char *const of_step[][2] = {
    {"SLURM_HET_SIZE", "2"},
    {"SLURM_JOB_ID_PACK_GROUP_0", "4710"},
    {"SLURM_JOB_ID_PACK_GROUP_1", "4711"},
    {"SLURM_JOB_NODELIST", "n[1-5]"},
    {"SLURM_JOB_NODELIST_PACK_GROUP_0", "n1"},
    {"SLURM_JOB_NODELIST_PACK_GROUP_1", NULL},
};

spank_err_t spank_getenv(spank_t spank, const char *name, char *value, int size)
{
	const char *text = strcmp(name, "SLURM_STEELYARD_TAGS") == 0 ? tags_variable
			   : strcmp(name, "SLURM_JOB_NAME") == 0     ? "a name"
			   : strcmp(name, "SLURM_JOB_NUM_NODES") == 0
			       ? (component_nodes ? "5" : "1")
			   : strcmp(name, "SLURMD_NODENAME") == 0 ? "n9"
								  : "";

	(void)spank;
	for (size_t i = 0; component_nodes && i < sizeof(of_step) / sizeof(of_step[0]); i++)
		if (strcmp(name, of_step[i][0]) == 0)
			text = of_step[i][1] ? of_step[i][1] : component_nodes;
	(void)snprintf(value, (size_t)size, "%s", text);
	return *text ? ESPANK_SUCCESS : ESPANK_ENV_NOEXIST;
}

void slurm_error(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	(void)vsnprintf(last_error, sizeof(last_error), format, list);
	va_end(list);
	errors++;
}

void slurm_info(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	(void)vsnprintf(last_info, sizeof(last_info), format, list);
	va_end(list);
}

void slurm_verbose(const char *format, ...)
{
	(void)format;
}

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
typedef slurm_step_id_t id_of_job;
#define slurm_free_ctl_conf slurm_free_conf
#else
typedef uint32_t id_of_job;
#endif

int slurm_load_job(job_info_msg_t **answer, id_of_job job_id, uint16_t flags)
{
	static job_info_msg_t message = {.record_count = 1, .job_array = &job};

	(void)job_id;
	(void)flags;
	*answer = slurm_answers ? &message : NULL;
	return slurm_answers ? SLURM_SUCCESS : SLURM_ERROR;
}

void slurm_free_job_info_msg(job_info_msg_t *message)
{
	(void)message;
}

int slurm_load_ctl_conf(time_t since, slurm_conf_t **answer)
{
	static char *addresses[] = {(char *)"10.1.1.1", (char *)"10.1.1.2"};
	static slurm_conf_t conf = {.control_addr = addresses,
				    .control_cnt = 2,
				    .accounting_storage_host = (char *)"10.1.1.1"};

	(void)since;
	*answer = &conf;
	return slurm_answers ? SLURM_SUCCESS : SLURM_ERROR;
}

void slurm_free_ctl_conf(slurm_conf_t *conf)
{
	(void)conf;
}

int slurm_load_node_single(node_info_msg_t **answer, char *name, uint16_t flags)
{
	static node_info_t node = {.node_addr = (char *)"10.1.1.8"};
	static node_info_msg_t message = {.record_count = 1, .node_array = &node};

	(void)flags;
	*answer = strcmp(name, "n8") == 0 ? &message : NULL;
	return *answer ? SLURM_SUCCESS : SLURM_ERROR;
}

void slurm_free_node_info_msg(node_info_msg_t *message)
{
	(void)message;
}

/* A list of names with commas between them; the list itself is where the rest begins. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
typedef hostlist_t *list_of_hosts;
#else
typedef hostlist_t list_of_hosts;
#endif

static char hosts[256];

list_of_hosts slurm_hostlist_create(const char *list)
{
	(void)snprintf(hosts, sizeof(hosts), "%s", list);
	return (list_of_hosts)(void *)hosts;
}

char *slurm_hostlist_shift(list_of_hosts list)
{
	size_t length = strcspn(hosts, ",");
	char *first = length ? strndup(hosts, length) : NULL;

	(void)list;
	memmove(hosts, hosts + length + (hosts[length] == ','), sizeof(hosts) - length - 1);
	return first;
}

void slurm_hostlist_destroy(list_of_hosts list)
{
	(void)list;
}

char *slurm_strerror(int number)
{
	return strerror(number);
}

/* --- loading a fresh plugin, as every process of Slurm's does -------------------------------- */

typedef int callback(spank_t, int, char **);

static char dir[] = "/tmp/steelyard-test-XXXXXX";
static char arg_record[64], arg_run[64], arg_node[64], arg_policy[64];
static char *plugstack[] = {arg_record, arg_run, arg_node, (char *)"rate=2", (char *)"max_rate=50",
			    arg_policy};

__attribute__((unused)) static int call(void *plugin, const char *name)
{
	callback *function;

	*(void **)&function = dlsym(plugin, name);
	return function ? function(NULL, 6, plugstack) : -99;
}

/* --- steelyard-slurmdb -------------------------------------------------------------------------
 */

__attribute__((unused)) static void write_accounting(void)
{
	char path[96];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/requests", dir);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/steelyard-slurmdb", dir);
	file = fopen(path, "w");
	if (!file)
		return;
	(void)fprintf(file,
		      "#!/bin/sh\n[ \"$1\" = --job-end ] && echo \"$(cat)\" >>%s/requests\n%s\n",
		      dir, accounting);
	(void)fclose(file);
	(void)chmod(path, 0700);
}

static char requests_text[65536];

/* How often it was started to write a comment. */
__attribute__((unused)) static int comments(void)
{
	char path[96];
	size_t length = 0;
	int count = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/requests", dir);
	file = fopen(path, "r");
	if (file) {
		length = fread(requests_text, 1, sizeof(requests_text) - 1, file);
		(void)fclose(file);
	}
	requests_text[length] = '\0';
	for (const char *c = requests_text; (c = strchr(c, '\n')); c++)
		count++;
	return count;
}

/* Until it was started that often. */
__attribute__((unused)) static void wait_for_comments(int count)
{
	const struct timespec pause = {0, 5000000};

	for (int i = 0; i < 12000 && comments() < count; i++)
		(void)nanosleep(&pause, NULL);
}

/* A member of the last request: `own` is the comment's value. */
__attribute__((unused)) static const char *last_request(const char *member)
{
	static char text[8192];
	const char *line = comments() ? requests_text : "{}\n", *next;
	json_t *request;

	while ((next = strchr(line, '\n')) && next[1])
		line = next + 1;
	request = json_loads(line, 0, NULL);
	(void)snprintf(text, sizeof(text), "%s",
		       json_string_value(json_object_get(request, member)) ?: "");
	json_decref(request);
	return text;
}

__attribute__((unused)) static void *load(const char *path, enum spank_context in, uint32_t step)
{
	void *plugin = dlopen(path, RTLD_LAZY | RTLD_LOCAL);

	option_count = 0;
	context = in;
	step_id = step;
	write_accounting();
	last_error[0] = last_info[0] = '\0';
	errors = 0;
	if (plugin)
		is_int(call(plugin, "slurm_spank_init"), 0, "init returns 0");
	return plugin;
}

__attribute__((unused)) static int give(const char *name, const char *value, int remote)
{
	for (size_t i = 0; i < option_count; i++) {
		if (strcmp(options[i]->name, name) == 0)
			return options[i]->cb(options[i]->val, value, remote);
	}
	return -99;
}

/* The folder of this test, and the arguments that lie in it. */
__attribute__((unused)) static bool make_folder(void)
{
	if (!mkdtemp(dir))
		return false;
	(void)snprintf(arg_record, sizeof(arg_record), "record_dir=%s/records", dir);
	(void)snprintf(arg_run, sizeof(arg_run), "run_dir=%s/run", dir);
	(void)snprintf(arg_node, sizeof(arg_node), "node_program=%s/node", dir);
	(void)snprintf(arg_policy, sizeof(arg_policy), "netem_policy=%s/netem.conf", dir);
	return true;
}

__attribute__((unused)) static bool remove_folder(void)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) == 0;
}

#endif
