#include "conditions.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "capture/file.h"
#include "cold_cache.h"
#include "job_cgroup.h"
#include "job_facts.h"
#include "netem/end.h"
#include "netem/spec/text.h"
#include "node_command.h"
#include "options.h"
#include "record/stale_files.h"

#define EXIT_CONDITION 4 /* docs: a condition could not be applied */
#define DOCUMENT_SIZE  65536
/* Below Slurm's UnkillableStepTimeout (60 s): a step that hangs longer drains its node. */
#define APPLY_LIMIT_MS	30000
#define FINISH_LIMIT_MS 20000
#define REAP_LIMIT_MS	10000

#define NO_EXTERN_STEP                                                                             \
	"the job has no extern step on this node, whose end would end this as well: slurm.conf "   \
	"needs PrologFlags=Contain"

static char refusal[1024];	     /* "": none */
static char join_path[SY_PATH_SIZE]; /* cgroup.procs of the job's shaped traffic; "": none */
static char canonical[SY_NETEM_SIZE];

__attribute__((format(printf, 2, 3))) static void refuse(const char *option, const char *format,
							 ...)
{
	char sentence[sizeof(((struct sy_error *)0)->text)];
	va_list list;

	if (refusal[0])
		return;
	va_start(list, format);
	(void)vsnprintf(sentence, sizeof(sentence), format, list);
	va_end(list);
	(void)snprintf(refusal, sizeof(refusal), "%s%s%s", option, *option ? ": " : "", sentence);
	for (char *c = refusal; *c; c++) {
		if ((unsigned char)*c < ' ')
			*c = '?';
	}
	slurm_error("steelyard: %s", refusal);
}

static void refuse_netem(const char *sentence)
{
	char option[SY_NETEM_SIZE + 16];

	(void)snprintf(option, sizeof(option), "--netem=%s", canonical);
	refuse(option, "%s", sentence);
}

/* The job's own cgroup, where Slurm makes one. */
static bool own_cgroup(const struct sy_step *step, char *path, size_t size)
{
	char text[8192];
	const char *found;
	size_t length;
	cleanup_close int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || sy_read_fd(fd, text, sizeof(text)) <= 0)
		return false;
	found = sy_job_cgroup_find(text, step->job_id, &length);
	if (found)
		(void)snprintf(path, size, "%.*s", (int)length, found);
	return found;
}

/* Where a task must go so that its traffic is the job's: told by the node's own program. */
static void keep_join_path(const char *text)
{
	json_t *document = json_loads(text, 0, NULL);
	const char *path = json_string_value(json_object_get(document, "join_path"));

	(void)snprintf(join_path, sizeof(join_path), "%s", path ? path : "");
	json_decref(document);
}

static int apply(const struct sy_config *config, const struct sy_step *step,
		 const struct sy_job_facts *facts, pid_t watch, struct sy_error *err)
{
	static struct sy_command command;
	char cgroup[SY_PATH_SIZE], peer[SY_ADDRESS_SIZE];
	cleanup_free char *out = malloc(DOCUMENT_SIZE);

	if (!out)
		return sy_fail(err, "no memory");
	sy_command_begin(&command, config, "netem", "apply");
	sy_command_job(&command, config, step);
	sy_command_asker(&command, config, step, facts);
	sy_command_number(&command, "--watch", (unsigned)watch);
	if (!facts->whole_host) /* "/": it has none, and one is made for its tasks to join */
		sy_option(&command.arguments, "--cgroup",
			  own_cgroup(step, cgroup, sizeof(cgroup)) ? cgroup : "/");
	sy_peer_of(&sy_options.netem, facts, peer);
	if (peer[0])
		sy_option(&command.arguments, "--peer", peer);
	for (int i = 0; i < facts->protect.count; i++)
		sy_option(&command.arguments, "--protect", facts->protect.text[i]);
	sy_argument(&command.arguments, "--");
	sy_argument(&command.arguments, canonical);
	if (sy_command_run(&command, APPLY_LIMIT_MS, out, DOCUMENT_SIZE, err) < 0)
		return -1;
	keep_join_path(out);
	return 0;
}

static void state_path(char *path, size_t size, const struct sy_config *config,
		       const struct sy_step *step)
{
	(void)snprintf(path, size, "%s/netem/%s.%u.json", config->run_dir, step->node,
		       step->job_id);
}

static bool has_state(const struct sy_config *config, const struct sy_step *step)
{
	char path[2 * SY_PATH_SIZE];

	state_path(path, sizeof(path), config, step);
	return access(path, F_OK) == 0;
}

/* `none` touches nothing, and so needs nobody's permission. */
static void start_none(const struct sy_config *config, const struct sy_step *step,
		       struct sy_outbox *outbox)
{
	if (has_state(config, step))
		refuse_netem("this job has its network conditions on this node already; one job, "
			     "one set of conditions");
	else
		sy_outbox_send(outbox, "tag network=none");
}

static void start_netem(const struct sy_config *config, const struct sy_step *step,
			const struct sy_job_facts *facts)
{
	struct sy_error err;
	pid_t watch = sy_step_extern_pid(step);

	if (watch == 0)
		refuse_netem(NO_EXTERN_STEP);
	else if (sy_refuse_scheduler(&sy_options.netem, &facts->protect, &err) < 0 ||
		 apply(config, step, facts, watch, &err) < 0)
		refuse_netem(err.text);
}

/* Another step has asked for it before. A state alone may be of one that was killed. */
static bool capture_goes_on(const struct sy_config *config, const struct sy_step *step)
{
	char path[2 * SY_PATH_SIZE], name[SY_PATH_SIZE];
	cleanup_close int folder = -1;

	(void)snprintf(path, sizeof(path), "%s/capture", config->run_dir);
	(void)snprintf(name, sizeof(name), "%s.%u.json", step->node, step->job_id);
	folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return folder >= 0 && sy_capture_is_held(folder, name);
}

/* It goes on beside the sampler, which takes it into the record; it ends with the extern step. */
static int start_capture(const struct sy_config *config, const struct sy_step *step,
			 const struct sy_job_facts *facts, struct sy_error *err)
{
	static struct sy_command command;
	char owner[32], out[SY_MESSAGE_MAX];
	pid_t watch = sy_step_extern_pid(step);

	if (capture_goes_on(config, step))
		return 0;
	if (watch == 0)
		return sy_fail(err, NO_EXTERN_STEP);
	(void)snprintf(owner, sizeof(owner), "%u:%u", step->uid, step->gid);
	sy_command_begin(&command, config, "capture", "--record-dir");
	sy_argument(&command.arguments, config->record_dir);
	sy_command_job(&command, config, step);
	sy_command_asker(&command, config, step, facts);
	sy_command_number(&command, "--watch", (unsigned)watch);
	sy_option(&command.arguments, "--owner", owner);
	if (sy_options.has_netem && sy_options.netem.device[0])
		sy_option(&command.arguments, "--device", sy_options.netem.device);
	for (int i = 0; i < facts->protect.count; i++)
		sy_option(&command.arguments, "--protect", facts->protect.text[i]);
	return sy_command_run(&command, APPLY_LIMIT_MS, out, sizeof(out), err);
}

/* For the record: what was asked for stands there from the beginning, and why it is not had. What
 * is had after all takes its place. */
static void tell_unmet(struct sy_outbox *outbox, const char *how, const char *what)
{
	if (sy_options.has_netem && !sy_options.netem.none)
		sy_outbox_send(outbox, "unmet network_conditions %s: %s%s", how,
			       what ? "" : "--netem=", what ? what : canonical);
	if (sy_options.cache == SY_CACHE_COLD)
		sy_outbox_send(outbox, "unmet cache %s: %s", how, what ? what : "--cache=cold");
	if (sy_options.capture)
		sy_outbox_send(outbox, "unmet capture %s: %s", how, what ? what : "--capture");
}

static bool asks_for_something(void)
{
	return (sy_options.has_netem && !sy_options.netem.none) ||
	       sy_options.cache == SY_CACHE_COLD || sy_options.capture;
}

static void try_conditions(spank_t spank, const struct sy_config *config,
			   const struct sy_step *step, struct sy_outbox *outbox)
{
	static struct sy_job_facts facts;
	struct sy_error err;
	bool shapes = sy_options.has_netem && !sy_options.netem.none;
	bool cold = sy_options.cache == SY_CACHE_COLD;
	bool capture = sy_options.capture;

	if (sy_job_facts_get(spank, step, &facts, &err) < 0) {
		refuse(shapes ? "--netem" : cold ? "--cache=cold" : "--capture", "%s", err.text);
		return;
	}
	if (shapes)
		start_netem(config, step, &facts);
	if (cold && !refusal[0] && sy_cold_cache_make(config, step, &facts, outbox, &err) < 0)
		refuse("--cache=cold", "%s", err.text);
	if (capture && !refusal[0] && start_capture(config, step, &facts, &err) < 0)
		refuse("--capture", "%s", err.text);
}

void sy_conditions_start(spank_t spank, const struct sy_config *config, const struct sy_step *step,
			 struct sy_outbox *outbox)
{
	if (sy_options.has_netem)
		(void)sy_netem_format(&sy_options.netem, canonical);
	if (sy_options.fault[0])
		refuse("", "%s", sy_options.fault);
	else if (canonical[0] && sy_options.netem.none)
		start_none(config, step, outbox);
	tell_unmet(outbox, "asked for, not in place yet", NULL);
	if (!sy_options.fault[0] && asks_for_something())
		try_conditions(spank, config, step, outbox);
	if (refusal[0])
		tell_unmet(outbox, "refused", refusal);
}

void sy_conditions_join(void)
{
	cleanup_close int fd = -1;

	if (refusal[0] || !join_path[0])
		return;
	fd = open(join_path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1) /* 0: the writer itself */
		refuse("--netem", "a task cannot be put into %s: %s", join_path, strerror(errno));
}

void sy_conditions_enforce(spank_t spank)
{
	static const char mark[] = "steelyard: ";
	uint32_t task = 0;

	if (!refusal[0])
		return;
	(void)spank_get_item(spank, S_TASK_ID, &task);
	if (task == 0) {
		char line[sizeof(refusal) + sizeof(mark)];
		int length = snprintf(line, sizeof(line), "%s%s\n", mark, refusal);

		(void)sy_write_all(STDERR_FILENO, line, (size_t)length);
	}
	_exit(EXIT_CONDITION);
}

const char *sy_conditions_netem(void)
{
	return canonical[0] ? canonical : NULL;
}

int sy_conditions_valid(const struct sy_config *config, const struct sy_step *step)
{
	char path[2 * SY_PATH_SIZE];
	json_t *state;
	const json_t *valid;
	int answer;

	state_path(path, sizeof(path), config, step);
	state = json_load_file(path, 0, NULL);
	valid = json_object_get(state, "valid");
	answer = json_is_boolean(valid) ? json_is_true(valid) : -1;
	json_decref(state);
	return answer;
}

void sy_conditions_end(const struct sy_config *config, const struct sy_step *step)
{
	static struct sy_command command;

	sy_cold_cache_forget(config, step);
	if (!has_state(config, step))
		return;
	sy_command_begin(&command, config, "netem", "finish");
	sy_command_job(&command, config, step);
	sy_option(&command.arguments, "--by", "job");
	sy_command_tell(&command, FINISH_LIMIT_MS, "network conditions not undone yet");
}

void sy_conditions_reap(const struct sy_config *config, const char *by)
{
	static struct sy_command command;

	if (!sy_netem_any(config->run_dir) && !sy_stale_files_any(config->run_dir))
		return;
	sy_command_begin(&command, config, "netem", "reap");
	sy_command_states(&command, config);
	sy_option(&command.arguments, "--by", by);
	sy_command_tell(&command, REAP_LIMIT_MS, "network conditions of dead jobs not undone");
}
