/* The commands of steelyard-node: one file each, cmd_NAME.c. Each returns an exit code. */
#ifndef STEELYARD_COMMAND_H
#define STEELYARD_COMMAND_H

/* Exit codes, the same as those of the command `steelyard`. */
enum sy_exit {
	SY_EXIT_DONE = 0,
	SY_EXIT_BUG = 1,
	SY_EXIT_USAGE = 2,
	SY_EXIT_MISSING = 3,
	SY_EXIT_CONDITION = 4,
};

int sy_cmd_probe(int argc, char **argv);
int sy_cmd_sample(int argc, char **argv);
int sy_cmd_record(int argc, char **argv);
int sy_cmd_send(int argc, char **argv);
int sy_cmd_netem(int argc, char **argv);
int sy_cmd_cache(int argc, char **argv);
int sy_cmd_capture(int argc, char **argv);

#endif
