#include "job/kernel_count.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exec.h"
#include "base/file.h"
#include "bpf/job.h"
#include "bpf/pins.h"
#include "job/config.h"
#include "sampler/control_socket.h"
#include "sampler/kernel_count.h"

#define LOCK_MS 100 /* others hold it for less than one, or while they load */
#define MADE_MS 100 /* by a sampler that has just been started; else by us, which takes 50 */

const char *sy_counted_program(bool is_requested, const char *node_program, char path[SY_PATH_SIZE])
{
	return is_requested && geteuid() == 0 &&
		       sy_program_beside(node_program, SY_LOADER, path, SY_PATH_SIZE) &&
		       access(path, X_OK) == 0
		   ? path
		   : NULL;
}

/* The file marks that the BPF program could not be loaded. */
static bool format_refusal_path(char *path, size_t size, const struct sy_node_program *program)
{
	return snprintf(path, size, "%s/bpf.refused", program->run_dir) < (int)size;
}

/* True when the present loader has been refused before. */
static bool is_refused(const char *refusal, const char *bpf)
{
	struct stat then, now;

	return stat(refusal, &then) == 0 && stat(bpf, &now) == 0 && now.st_mtime <= then.st_mtime;
}

static void run_loader(const struct sy_node_program *program, const char *bpf, int wait_ms)
{
	struct sy_arguments arguments;
	struct sy_spawn_output answer = {.out = (char[64]){""}, .out_size = 64};

	sy_begin_arguments(&arguments, program);
	arguments.argv[0] = (char *)bpf;
	sy_argument(&arguments, "load");
	(void)sy_spawn_and_read(&arguments, wait_ms, &answer, NULL);
}

void sy_counted_load(const struct sy_node_program *program, const char *bpf, int wait_ms)
{
	char refusal[SY_PATH_SIZE + 16];
	cleanup_close int fd = -1;

	if (!bpf || geteuid() != 0 || sy_bpf_count_jobs(SY_BPF_BASE) >= 0 ||
	    access(bpf, X_OK) < 0 || !format_refusal_path(refusal, sizeof(refusal), program) ||
	    is_refused(refusal, bpf))
		return;
	run_loader(program, bpf, wait_ms);
	if (sy_bpf_count_jobs(SY_BPF_BASE) >= 0)
		(void)unlink(refusal);
	else
		fd = open(refusal, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
}

void sy_counted_retry(const struct sy_node_program *program)
{
	char refusal[SY_PATH_SIZE + 16];

	if (format_refusal_path(refusal, sizeof(refusal), program))
		(void)unlink(refusal);
}

int sy_counted_keep(void)
{
	cleanup_close int lock =
	    geteuid() == 0 ? sy_bpf_lock(SY_BPF_BASE, false, SY_LOAD_MS, NULL) : -1;

	return lock >= 0 ? sy_bpf_use(SY_BPF_BASE) : -1;
}

void sy_counted_release(int fd)
{
	cleanup_close int lock = -1;

	if (fd < 0)
		return;
	(void)close(fd);
	lock = sy_bpf_lock(SY_BPF_BASE, false, SY_LOAD_MS, NULL);
	if (lock >= 0)
		sy_bpf_sweep(SY_BPF_BASE);
}

void sy_counted_join(struct sy_counted *counted, const struct sockaddr_un *control,
		     enum sy_bpf_kind kind)
{
	unsigned long long made_ns = sy_control_made_ns(control->sun_path);
	struct sy_error err;
	struct sy_bpf bpf;

	*counted = (struct sy_counted){0};
	if (!made_ns || geteuid() != 0 || sy_bpf_count_jobs(SY_BPF_BASE) < 0)
		return;
	counted->number = sy_bpf_hash_job(control->sun_path, made_ns);
	(void)sy_bpf_await(SY_BPF_BASE, counted->number, MADE_MS);
	if (sy_bpf_begin(&bpf, SY_BPF_BASE, counted->number, kind, LOCK_MS, &err) < 0)
		return;
	counted->since_ns = (int64_t)bpf.mapped->since_ns;
	sy_bpf_close(&bpf);
}

void sy_counted_forget(const struct sy_counted *counted, const struct sy_node_program *program,
		       const char *bpf)
{
	cleanup_close int lock = -1;

	if (!counted->number || !bpf)
		return;
	lock = sy_bpf_lock(SY_BPF_BASE, false, LOCK_MS, NULL);
	if (lock < 0)
		return;
	sy_bpf_forget(SY_BPF_BASE, counted->number);
	sy_sweep_bpf(program, bpf);
}
