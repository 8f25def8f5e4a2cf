/* AdminComment and joules of jobs that are over, in slurmdbd. */
#ifndef STEELYARD_SLURMDB_PUBLISH_H
#define STEELYARD_SLURMDB_PUBLISH_H

/* A line of JSON a job on stdin, an answer each on stdout. The exit code. */
int sy_publish(void);

#endif
