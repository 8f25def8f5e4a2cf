/* The sampler's parent: what measuring a command and attending a job share. The functions are
 * called in this order. After one has failed, the others are safe to call: a record that cannot be
 * written is skipped, a child that does not run is not waited for. */
#ifndef STEELYARD_SAMPLER_PARENT_H
#define STEELYARD_SAMPLER_PARENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include "base/clock.h"
#include "counters/child_processes.h"
#include "record/record.h"
#include "record/record_files.h"
#include "sampler/child_state.h"
#include "sampler/kernel_count.h"

struct sy_parent {
	struct sy_sampling *sampling;
	struct sy_node node;
	struct sy_head head;
	struct sy_shared *shared; /* NULL: no child was started */
	struct sy_recordfile file;
	struct sy_wall wall;
	struct sy_kernel_count kernel;
	char samples_file[320];
	char mark[512]; /* of an unfinished record */
	size_t notes_read;
	int64_t opening_us; /* how long the files' opening took */
	int control_fd, csv_fd, child_fd, signal_fd, root;
	int notes_ms; /* how long to wait for more messages before the record is written again */
	pid_t child;
	int child_status; /* as from waitpid, when it has ended */
	bool child_ended, has_record;
	bool ends_with_child; /* the child decides when it is over; else its end changes nothing */
	bool end;
};

/* Open counters and files, and have the kernel count. On failure the reason is printed. */
bool sy_parent_set_up(struct sy_parent *p);

/* Start the child, wait for its first sample, and print the record's path. */
void sy_parent_start_child(struct sy_parent *p);

/* The record of the start: every total null. */
void sy_parent_probe(struct sy_parent *p);
void sy_parent_write_first_record(struct sy_parent *p);

/* Until `end` is set: pass signals to `on_signal`, write messages about the job into the record. */
void sy_parent_wait(struct sy_parent *p,
		    void (*on_signal)(struct sy_parent *p, const struct signalfd_siginfo *info));

/* Whether the child runs, as far as is known. */
bool sy_parent_has_child(const struct sy_parent *p);
void sy_parent_send(struct sy_parent *p, const char *message);

/* End the child, write the last record, undo the rest. `exact`: of a command that has ended, else
 * NULL. */
void sy_parent_finish(struct sy_parent *p, const struct sy_exact *exact);

/* Close the record; later values stay out. */
void sy_parent_close_record(struct sy_parent *p);

#endif
