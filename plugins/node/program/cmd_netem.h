/* The verbs of `steelyard-node netem`: argv[0] is the verb's name, each returns an exit code. */
#ifndef STEELYARD_PROGRAM_CMD_NETEM_H
#define STEELYARD_PROGRAM_CMD_NETEM_H

int sy_netem_parse_command(int argc, char **argv);
int sy_netem_check_command(int argc, char **argv);
int sy_netem_sites_command(int argc, char **argv);
int sy_netem_apply_command(int argc, char **argv);
int sy_netem_finish_command(int argc, char **argv);
int sy_netem_show_command(int argc, char **argv);
int sy_netem_clear_command(int argc, char **argv);
int sy_netem_reap_command(int argc, char **argv);

#endif
