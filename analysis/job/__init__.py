"""One job or several, without a study: allocation and usage, time series, differences.

`job_lookup` finds jobs by their ids, `job_view` has what accounting and records contain of one,
`job_totals` sums over its nodes and has the energy of its GPUs, `job_samples` loads its samples,
`comment_builder` makes its AdminComment.

`usage` compares what was allocated with what was used, `advice` derives what to request next time.
`time_series` reads rates and levels from samples, and decides which samples are new readings of a
counter. `pressure` has how long the job waited for a resource. `job_array` combines an array's
tasks, `differences` compares two jobs. `hypervisor_record` joins a guest's job with its
hypervisor's record, and computes the share of the host's energy.

One job is one observation: no function here states a cause. Where the record of a node is missing
and the accounting has no value, the sum of the others is a lower bound, and marked as one.
"""
