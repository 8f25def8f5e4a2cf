/* steelyard-slurmdb at a job's end, with a slurmctld that is late, refuses, or holds what others
 * wrote. */
#include "tap.h"

#if !__has_include(<slurm/slurm.h>)
int main(void)
{
	(void)puts("1..0 # SKIP no slurm/slurm.h here (Debian: libslurm-dev)");
	return 0;
}
#else

#include <sys/mman.h>
#include <sys/wait.h>

#include "../../plugins/slurmdb/allocatable_cores.c"
#include "../../plugins/slurmdb/job_end_comment.c"

#define JOB 4711u

/* What the job has in slurmctld; shared with the process that plays the program. */
static struct controller {
	char admin_comment[8192];
	int comments;	       /* how often it was set */
	int refusals, refusal; /* how often it is not, and by which error */
	unsigned slept_s;
	uint32_t state;
	bool silent;
} * slurmctld;

static node_info_t node;

unsigned sleep(unsigned seconds)
{
	slurmctld->slept_s += seconds;
	return 0;
}

void slurm_init(const char *conf)
{
	(void)conf;
}

void slurm_init_job_desc_msg(job_desc_msg_t *message)
{
	memset(message, 0, sizeof(*message));
}

int slurm_update_job(job_desc_msg_t *message)
{
	if (SY_JOB_ID_OF(message) != JOB)
		return SLURM_ERROR;
	if (slurmctld->refusals > 0) {
		slurmctld->refusals--;
		errno = slurmctld->refusal;
		return SLURM_ERROR;
	}
	(void)snprintf(slurmctld->admin_comment, sizeof(slurmctld->admin_comment), "%s",
		       message->admin_comment);
	slurmctld->comments++;
	return SLURM_SUCCESS;
}

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
typedef slurm_step_id_t id_of_job;
#else
typedef uint32_t id_of_job;
#endif

int slurm_load_job(job_info_msg_t **answer, id_of_job job_id, uint16_t flags)
{
	static job_info_t jobs[2];
	static job_info_msg_t message = {.record_count = 2, .job_array = jobs};

	(void)job_id;
	(void)flags;
	SY_JOB_ID_OF(&jobs[0]) = JOB - 1; /* for an array's last task all are returned */
	jobs[0].admin_comment = (char *)"another's";
	SY_JOB_ID_OF(&jobs[1]) = JOB;
	jobs[1].admin_comment = slurmctld->admin_comment;
	jobs[1].job_state = slurmctld->state;
	*answer = &message;
	errno = SLURM_COMMUNICATIONS_CONNECTION_ERROR;
	return slurmctld->silent ? SLURM_ERROR : SLURM_SUCCESS;
}

void slurm_free_job_info_msg(job_info_msg_t *message)
{
	(void)message;
}

int slurm_load_node_single(node_info_msg_t **answer, char *name, uint16_t flags)
{
	static node_info_msg_t message = {.record_count = 1, .node_array = &node};

	(void)flags;
	*answer = strcmp(name, "n9") == 0 ? &message : NULL;
	return *answer ? SLURM_SUCCESS : SLURM_ERROR;
}

void slurm_free_node_info_msg(node_info_msg_t *message)
{
	(void)message;
}

char *slurm_strerror(int number)
{
	return strerror(number);
}

static char message[1024], complained[1024];

static void read_all(int fd, char *text, size_t size)
{
	ssize_t got = read(fd, text, size - 1);

	text[got > 0 ? got : 0] = '\0';
	(void)close(fd);
}

/* Run it with a request on stdin; its exit code. `deaf`: nobody reads its stdout any more. */
static int run(const char *request, bool deaf)
{
	int in[2], out[2], errors[2], status = -1;
	pid_t child;

	if (pipe(in) != 0 || pipe(out) != 0 || pipe(errors) != 0)
		return -1;
	(void)!write(in[1], request, strlen(request));
	(void)close(in[1]);
	if (deaf)
		(void)close(out[0]);
	(void)fflush(stdout);
	child = fork();
	if (child == 0) {
		(void)dup2(in[0], 0);
		(void)dup2(out[1], 1);
		(void)dup2(errors[1], 2);
		_exit(sy_job_end());
	}
	(void)close(in[0]);
	(void)close(out[1]);
	(void)close(errors[1]);
	(void)waitpid(child, &status, 0);
	message[0] = '\0';
	if (!deaf)
		read_all(out[0], message, sizeof(message));
	read_all(errors[0], complained, sizeof(complained));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define BATCH "{\"job_id\":4711,\"batch\":true,\"own\":\"{\\\"elapsed_s\\\":3.5}\"}\n"
#define STEP  "{\"job_id\":4711,\"batch\":false,\"own\":\"{\\\"elapsed_s\\\":3.5}\"}\n"
#define OURS  "\"steelyard\":{\"elapsed_s\":3.5}}"

static void begin(const char *comment)
{
	*slurmctld = (struct controller){.state = JOB_RUNNING};
	(void)snprintf(slurmctld->admin_comment, sizeof(slurmctld->admin_comment), "%s", comment);
}

static void test_merging(void)
{
	begin("");
	is_int(run(BATCH, false), 0, "nothing was there");
	is_string(slurmctld->admin_comment, "{" OURS, "ours is");
	is_string(message, "verbose: AdminComment of job 4711: written\n", "and it says so");
	is_int(run(BATCH, false), 0, "the same once more");
	is_int(slurmctld->comments, 1, "is no update");
	begin("{\"site\":[1.50]}");
	is_int(run(BATCH, false), 0, "what others wrote");
	is_string(slurmctld->admin_comment, "{\"site\":[1.50]," OURS, "stays, ours beside it");
	begin("JS1:text");
	is_int(run(BATCH, false), 0, "text that is no object");
	is_string(slurmctld->admin_comment, "JS1:text", "stays");
	is_string(message,
		  "info: AdminComment of job 4711: left as it is: there is text of somebody else "
		  "that is no JSON object\n",
		  "and it says why");
}

static void test_steps(void)
{
	begin("{\"steelyard\":{\"elapsed_s\":9}}");
	is_int(run(STEP, false), 0, "a step, of which a later one has written more");
	is_int(slurmctld->comments, 0, "writes nothing");
	is_int(run(BATCH, false), 0, "the batch step");
	is_string(slurmctld->admin_comment, "{" OURS, "has the last word");
}

static void test_refusals(void)
{
	begin("");
	slurmctld->state = JOB_COMPLETE | JOB_COMPLETING;
	is_int(run(BATCH, false), 0, "a job that is over");
	is_int(slurmctld->comments, 0, "is left alone: slurmctld would log an error");
	is_string(message, "verbose: AdminComment of job 4711: not written: the job is over\n",
		  "and that is no news");
	begin("");
	slurmctld->refusal = ESLURM_ALREADY_DONE;
	slurmctld->refusals = 9;
	is_int(run(STEP, false), 0, "a job that ends meanwhile");
	is_int(slurmctld->refusals, 8, "is tried once");
	begin("");
	slurmctld->refusal = SLURM_COMMUNICATIONS_CONNECTION_ERROR;
	slurmctld->refusals = 1;
	is_int(run(BATCH, false), 0, "refused once");
	is_int(slurmctld->comments, 1, "is written when it is tried again");
	is_int(slurmctld->slept_s, 1, "a second later");
	begin("");
	slurmctld->silent = true;
	is_int(run(BATCH, false), 0, "a slurmctld that does not answer");
	is_int(slurmctld->slept_s, 1 + 3 + 9, "is asked four times");
	ok(strstr(message, "info: AdminComment of job 4711: not written: ") == message &&
	       strstr(message, "; `steelyard publish` writes it\n"),
	   "and it says who writes it: %s", message);
}

static void test_nobody_waits(void)
{
	begin("JS1:text");
	is_int(run(BATCH, true), 0, "the plugin has gone on");
	ok(strstr(complained, "AdminComment of job 4711: left as it is: ") == complained,
	   "it complains where the next job logs it: %s", complained);
	begin("");
	is_int(run(BATCH, true), 0, "what is no news");
	is_string(complained, "", "is no complaint");
}

static void test_no_request(void)
{
	static const char *const none[] = {"", "{", "[]", "{\"job_id\":7}", "{\"own\":\"{}\"}"};

	begin("");
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		is_int(run(none[i], false), SY_SLURMDB_USAGE, "no request");
	is_int(slurmctld->comments, 0, "nothing is written");
}

static void test_cores(void)
{
	node = (node_info_t){.sockets = 8, .cores = 1, .threads = 1, .cpus = 8, .cpus_efctv = 8};
	is_int(count_allocatable(&node), 8, "a node whose CPUs are told flat");
	node = (node_info_t){.sockets = 2,
			     .cores = 4,
			     .threads = 2,
			     .cpus = 16,
			     .cpus_efctv = 12,
			     .core_spec_cnt = 2};
	is_int(count_allocatable(&node), 6, "all but the specialized cores");
	is_int(sy_print_cores("n8"), SY_SLURMDB_MISSING, "a node that slurmctld does not know");
}

int main(void)
{
	slurmctld = mmap(NULL, sizeof(*slurmctld), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	test_merging();
	test_steps();
	test_refusals();
	test_nobody_waits();
	test_no_request();
	test_cores();
	return done_testing();
}
#endif
