/* steelyard-node, the program of a node: its commands and their verbs.
 *
 * Schedulers' plugins, prologues and hooks start it, administrators type it. main.c finds the
 * command, one file cmd_NAME.c each reads the options (options.h has those that several share),
 * calls the room that does the work, and prints one JSON object on one line, or a document. Nothing
 * is measured or changed in here but caches (cold_cache.h).
 *
 * A command returns an exit code (enum sy_exit): 0 done, 2 wrong usage, 3 something needed is
 * missing, 4 a condition cannot be applied, 1 a fault of ours. A complaint is one line on stderr,
 * "steelyard-node COMMAND: what happened"; callers show its last line to the user. A command that
 * fails leaves stdout empty (job/spawn.h relies on that), but for the doctor's list; `sample` with
 * a command ends with that command's exit code. */
#ifndef STEELYARD_PROGRAM_COMMANDS_H
#define STEELYARD_PROGRAM_COMMANDS_H

int sy_cmd_probe(int argc, char **argv);
int sy_cmd_doctor(int argc, char **argv);
int sy_cmd_sample(int argc, char **argv);
int sy_cmd_record(int argc, char **argv);
int sy_cmd_send(int argc, char **argv);
int sy_cmd_cache(int argc, char **argv);

/* The verbs of `steelyard-node job`. */
int sy_job_begin_command(int argc, char **argv);
int sy_job_attach_command(int argc, char **argv);
int sy_job_end_command(int argc, char **argv);
int sy_job_sweep_command(int argc, char **argv);
int sy_job_check_command(int argc, char **argv);
int sy_job_encode_command(int argc, char **argv);

/* The verbs of `steelyard-node netem`: argv[0] is the verb's name. */
int sy_netem_parse_command(int argc, char **argv);
int sy_netem_check_command(int argc, char **argv);
int sy_netem_sites_command(int argc, char **argv);
int sy_netem_apply_command(int argc, char **argv);
int sy_netem_finish_command(int argc, char **argv);
int sy_netem_show_command(int argc, char **argv);
int sy_netem_clear_command(int argc, char **argv);
int sy_netem_reap_command(int argc, char **argv);

#endif
