"""`steelyard publish`: what Slurm's accounting has missed, from records.

`publish` finds the jobs that ended in the requested time, at least a minute ago, and compares their
AdminComment with the job's complete records. It plans a comment where ours is missing, partial or
knows less, with `--energy` also the job's joules. steelyard-slurmdb writes all of them over one
connection.

A record is its user's file, the comment is root's: a record adds to a comment, and a value that
contradicts it is left with a reason. Text of others is never changed. A job without complete
records gets nothing. It may be repeated at any time: what is complete is skipped. It writes to
Slurm's accounting only, never to a record.
"""
