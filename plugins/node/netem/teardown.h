/* The end of a job's network conditions on this node, and what others want to know of them. */
#ifndef STEELYARD_NETEM_TEARDOWN_H
#define STEELYARD_NETEM_TEARDOWN_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

/* The job's end: measure once more, undo, leave the finished document in
 * RUN_DIR/netem/NODE.JOB.done.json for the record. 1: there was nothing; 0; -1: could not be undone
 * (the state stays, with the reason in it). `by`: undone_by of the document. */
int sy_netem_finish(const char *run_dir, const char *node, const char *job_id, const char *by,
		    struct sy_error *err);

/* Take the finished document of a job, removing it; NULL: there is none. */
json_t *sy_netem_take_document(const char *run_dir, const char *node, const char *job_id);

/* Undo what nobody owns any more: another boot, or the watched process is gone. Returns how many
 * were undone, -1 when one could not be. One readdir when there is nothing. */
int sy_netem_undo_stale(const char *run_dir, const char *by, struct sy_error *err);

/* Undo everything of ours in this network namespace, state files or not (own handles). */
int sy_netem_clear_all(const char *run_dir, struct sy_error *err);

/* Whether anything for sy_netem_undo_stale lies in run_dir: cheap enough for every job's start. */
bool sy_netem_has_states(const char *run_dir);

/* Whether a job has conditions here that are not stale. */
bool sy_netem_is_live(const char *run_dir, const char *node, const char *job_id);

/* All states, as an array of documents with node, job_id, user_id, stale, devices. */
json_t *sy_netem_list_states(const char *run_dir, struct sy_error *err);

#endif
