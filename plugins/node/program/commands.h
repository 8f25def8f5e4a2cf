/* The commands of steelyard-node: one file each, cmd_NAME.c. Each returns an exit code. */
#ifndef STEELYARD_PROGRAM_COMMANDS_H
#define STEELYARD_PROGRAM_COMMANDS_H

int sy_cmd_probe(int argc, char **argv);
int sy_cmd_doctor(int argc, char **argv);
int sy_cmd_sample(int argc, char **argv);
int sy_cmd_record(int argc, char **argv);
int sy_cmd_send(int argc, char **argv);
int sy_cmd_netem(int argc, char **argv);
int sy_cmd_cache(int argc, char **argv);
int sy_cmd_job(int argc, char **argv);

#endif
