/* The verbs of `steelyard-node job`: each returns an exit code. */
#ifndef STEELYARD_PROGRAM_CMD_JOB_H
#define STEELYARD_PROGRAM_CMD_JOB_H

int sy_job_begin_command(int argc, char **argv);
int sy_job_attach_command(int argc, char **argv);
int sy_job_end_command(int argc, char **argv);
int sy_job_sweep_command(int argc, char **argv);
int sy_job_check_command(int argc, char **argv);
int sy_job_encode_command(int argc, char **argv);

#endif
