/* A job that the kernel counts from before its first process: the daemons that start the
 * processes begin it before its sampler runs. The sampler itself detects any failure. */
#ifndef STEELYARD_JOB_KERNEL_COUNT_H
#define STEELYARD_JOB_KERNEL_COUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "bpf/layout.h"
#include "job/config.h"
#include "job/node_command.h"

/* steelyard-bpf, where it is requested, we are root, and it is in the folder of steelyard-node;
 * else NULL. */
const char *sy_counted_program(bool is_requested, const char *node_program,
			       char path[SY_PATH_SIZE]);

#define SY_LOAD_MS 1000 /* as long as a job may wait */

/* Have the program that counts loaded, unless it is loaded, and wait for it: some 0.1 s,
 * `wait_ms` at most. Where that has failed it is not tried again before sy_counted_retry. `bpf`:
 * steelyard-bpf; NULL: not wanted. */
void sy_counted_load(const struct sy_node_program *program, const char *bpf, int wait_ms);
void sy_counted_retry(const struct sy_node_program *program);

/* A daemon of the node keeps the program loaded for as long as it has this descriptor open; -1:
 * nothing is loaded. Where the daemon is killed, the next job's end unloads the program. */
int sy_counted_keep(void);

/* Close it, and unload the program unless a job or another daemon needs it. */
void sy_counted_release(int fd);

struct sy_counted {
	uint64_t number;  /* of the job; 0: it is not known */
	int64_t since_ns; /* when its count was begun; 0: the calling process is not in it */
};

/* The calling process is one of the job whose sampler listens, or will, at `control`: as root. */
void sy_counted_join(struct sy_counted *counted, const struct sockaddr_un *control,
		     enum sy_bpf_kind kind);

/* Its sampler is gone: nobody will ask for it. */
void sy_counted_forget(const struct sy_counted *counted, const struct sy_node_program *program,
		       const char *bpf);

#endif
