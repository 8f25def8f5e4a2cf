#include "job/conditions.h"

#include "base/file.h"
#include "base/json_document.h"
#include "netem/netem.h"
#include "netem/spec/spec.h"
#include "record/unfinished_records.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <jansson.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DOCUMENT_SIZE 262144 /* of sites each link has its own in it */
/* Less than Slurm's UnkillableStepTimeout (60 s): a step that hangs longer drains its node.
 * Torque's prologue has 300 s, a hook of OpenPBS 30 s unless its alarm is longer. */
#define APPLY_LIMIT_MS	30000
#define FINISH_LIMIT_MS 20000
#define REAP_LIMIT_MS	10000

/* Where a task must go so that its traffic is the job's, as the node's program prints it. */
static int keep_join_path(const char *text, char join_path[SY_PATH_SIZE], struct sy_error *err)
{
	json_t *document = json_loads(text, 0, NULL);
	const char *path = json_string_value(json_object_get(document, "join_path"));

	if (!document)
		return sy_fail(err, "what steelyard-node said is no JSON: %.80s", text);
	(void)snprintf(join_path, SY_PATH_SIZE, "%s", path ? path : "");
	json_decref(document);
	return 0;
}

static void add_protected(struct sy_command *command, const struct sy_addresses *addresses)
{
	for (int i = 0; i < addresses->count; i++)
		sy_option(&command->arguments, "--protect", addresses->text[i]);
}

int sy_conditions_shape(const struct sy_command_job *job, const struct sy_shape_request *request,
			char join_path[SY_PATH_SIZE], struct sy_error *err)
{
	static struct sy_command command;
	cleanup_free char *out = malloc(DOCUMENT_SIZE);

	if (!out)
		return sy_fail(err, "no memory");
	sy_command_begin(&command, job, "netem", "apply");
	sy_command_job(&command, job);
	sy_command_add_asker(&command, job);
	sy_command_add_number(&command, "--watch", (unsigned)request->watch);
	if (request->cgroup)
		sy_option(&command.arguments, "--cgroup", request->cgroup);
	for (int i = 0; request->peers && i < request->peers->count; i++)
		sy_option(&command.arguments, "--peer", request->peers->text[i]);
	if (!request->peers && request->peer[0])
		sy_option(&command.arguments, "--peer", request->peer);
	for (int i = 0; i < request->marks; i++)
		sy_option(&command.arguments, "--mark", request->mark[i]);
	add_protected(&command, request->protect);
	sy_argument(&command.arguments, "--");
	sy_argument(&command.arguments, request->text);
	if (sy_command_run(&command, APPLY_LIMIT_MS, out, DOCUMENT_SIZE, err) < 0)
		return -1;
	return keep_join_path(out, join_path, err);
}

/* Send the fields that the record keeps (docs/formats.md part 1). */
static int send_cache_answer(const char *text, struct sy_message_queue *queue, struct sy_error *err)
{
	static const char *const fields[] = {"requested", "done", "refused"};
	json_t *answer = json_loads(text, 0, NULL), *message = json_object();
	cleanup_free char *line = NULL;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		json_t *value = json_object_get(answer, fields[i]);

		if (value)
			(void)json_object_set(message, fields[i], value);
	}
	line = sy_json_dump(message, JSON_COMPACT | JSON_ENSURE_ASCII);
	if (line && answer)
		sy_queue_send(queue, "cache %s", line);
	json_decref(message);
	if (!answer)
		return sy_fail(err, "what steelyard-node said is no JSON: %.80s", text);
	json_decref(answer);
	return 0;
}

int sy_conditions_drop_caches(const struct sy_command_job *job, int64_t cvmfs_mb,
			      struct sy_message_queue *queue, struct sy_error *err)
{
	static struct sy_command command;
	char out[SY_MESSAGE_MAX];

	sy_command_begin(&command, job, "cache", "--cold");
	if (cvmfs_mb)
		sy_command_add_number(&command, "--cvmfs-mb", (unsigned)cvmfs_mb);
	sy_command_add_asker(&command, job);
	if (sy_command_run(&command, SY_COLD_LIMIT_MS, out, sizeof(out), err) < 0)
		return -1;
	return send_cache_answer(out, queue, err);
}

void sy_report_unmet_conditions(const struct sy_user_options *options, const char *how,
				const char *what, struct sy_message_queue *queue)
{
	char netem[SY_NETEM_SIZE] = "";

	if (options->has_netem && !options->netem.none) {
		(void)sy_netem_format(&options->netem, netem);
		sy_queue_send(queue, "unmet network_conditions %s: %s%s", how,
			      what ? "" : "--netem=", what ? what : netem);
	}
	if (options->cache == SY_CACHE_COLD)
		sy_queue_send(queue, "unmet cache %s: %s", how, what ? what : "--cache=cold");
}

static void state_path(char *path, size_t size, const struct sy_command_job *job)
{
	(void)snprintf(path, size, "%s/netem/%s.%s.json", job->program.run_dir, job->node,
		       job->job_id);
}

bool sy_has_conditions(const struct sy_command_job *job)
{
	char path[2 * SY_PATH_SIZE];

	state_path(path, sizeof(path), job);
	return access(path, F_OK) == 0;
}

int sy_conditions_are_valid(const struct sy_command_job *job, bool other_networks)
{
	char path[2 * SY_PATH_SIZE];
	json_t *state;
	const json_t *valid;
	const char *scope;
	int answer;

	state_path(path, sizeof(path), job);
	state = json_load_file(path, 0, NULL);
	valid = json_object_get(state, "valid");
	scope = json_string_value(json_object_get(state, "scope"));
	answer = json_is_boolean(valid) ? json_is_true(valid) : -1;
	if (other_networks && scope && strcmp(scope, "job") == 0)
		answer = 0;
	json_decref(state);
	return answer;
}

int sy_conditions_finish(const struct sy_command_job *job, const char *by, struct sy_error *err)
{
	static struct sy_command command;

	if (!sy_has_conditions(job))
		return 0;
	sy_command_begin(&command, job, "netem", "finish");
	sy_command_job(&command, job);
	sy_option(&command.arguments, "--by", by);
	return sy_command_run_silent(&command, FINISH_LIMIT_MS, err);
}

int sy_conditions_undo_stale(const struct sy_command_job *job, const char *by, struct sy_error *err)
{
	static struct sy_command command;

	if (!sy_netem_has_states(job->program.run_dir) &&
	    !sy_stale_files(job->program.run_dir, false))
		return 0;
	sy_command_begin(&command, job, "netem", "reap");
	sy_command_add_run_dir(&command, job);
	sy_option(&command.arguments, "--by", by);
	return sy_command_run_silent(&command, REAP_LIMIT_MS, err);
}

static void add_text(struct sy_addresses *to, const char *text)
{
	for (int i = 0; i < to->count; i++) {
		if (strcmp(to->text[i], text) == 0)
			return;
	}
	if (to->count < SY_PROTECTED_MAX)
		(void)snprintf(to->text[to->count++], SY_ADDRESS_SIZE, "%s", text);
}

void sy_addresses_add_host(struct sy_addresses *to, const char *host)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
	char text[SY_ADDRESS_SIZE];

	if (!host || !*host || getaddrinfo(host, NULL, &hints, &list) != 0)
		return;
	for (const struct addrinfo *at = list; at; at = at->ai_next) {
		if (getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof(text), NULL, 0,
				NI_NUMERICHOST) == 0 &&
		    !strchr(text, '%')) /* link-local: no router passes it on */
			add_text(to, text);
	}
	freeaddrinfo(list);
}

static bool is_one_host(const struct sy_network *network)
{
	return network->prefix == (network->family == AF_INET ? 32 : 128);
}

void sy_find_peer(const struct sy_netem *spec, char peer[SY_ADDRESS_SIZE])
{
	if (spec->to_count == 1 && is_one_host(&spec->to[0]))
		(void)inet_ntop(spec->to[0].family, spec->to[0].address, peer, SY_ADDRESS_SIZE);
}

/* True when `network` contains `address` and no other. */
static bool is_exactly(const struct sy_network *network, const char *address)
{
	uint8_t bytes[16];

	if (inet_pton(network->family, address, bytes) != 1)
		return false;
	return is_one_host(network) &&
	       memcmp(bytes, network->address, (size_t)network->prefix / 8) == 0;
}

int sy_refuse_scheduler(const struct sy_netem *spec, const struct sy_addresses *addresses,
			const char *whose, struct sy_error *err)
{
	for (int i = 0; i < spec->to_count; i++) {
		for (int j = 0; j < addresses->count; j++) {
			if (is_exactly(&spec->to[i], addresses->text[j]))
				return sy_fail(err,
					       "to=%s is an address of the scheduler (%s), which "
					       "is never shaped: name another",
					       addresses->text[j], whose);
		}
	}
	return 0;
}
