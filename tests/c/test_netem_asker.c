/* Allowed requesters: users, groups, partitions, exclusive jobs; caches. */
#include "netem/policy/policy.h"
#include "policy_file.h"

#include <grp.h>
#include <pwd.h>

static const char people[] = "enabled yes\nusers daemon 1234\ngroups 77 bin\npartitions net fast\n";

static void is_person(uid_t uid, gid_t group, const char *expected)
{
	const gid_t groups[] = {65000, group};

	is_answer(people, "delay=1ms",
		  &(struct sy_requester){
		      .uid = uid, .groups = groups, .group_count = 2, .exclusive = SY_YES},
		  expected);
}

static void test_people(void)
{
	const struct passwd *user = getpwnam("daemon");
	const struct group *group = getgrnam("bin");

	if (!ok(user && group, "this machine knows the user daemon and the group bin"))
		return;
	is_person(user->pw_uid, 5, "");
	is_person(1234, 5, "");
	is_person(999, 77, "");
	is_person(999, group->gr_gid, "");
	is_person(0, 5, "");
	is_person(999, 5, "netem: user 999 is not among the users and groups of FILE");
	is_answer(people, "delay=1ms", &(struct sy_requester){.uid = 999, .exclusive = SY_YES}, "");
	is_answer("enabled yes\nusers 1234", "delay=1ms",
		  &(struct sy_requester){.uid = 999, .exclusive = SY_YES},
		  "netem: user 999 is not among the users and groups of FILE");
	is_answer("enabled yes\ngroups nosuchgroup", "delay=1ms",
		  &(struct sy_requester){
		      .uid = 9, .groups = &(gid_t){9}, .group_count = 1, .exclusive = SY_YES},
		  "netem: user 9 is not among the users and groups of FILE");
}

static void is_job(const char *text, uid_t uid, const char *partition, enum sy_known exclusive,
		   const char *expected)
{
	is_answer(
	    text, "delay=1ms",
	    &(struct sy_requester){.uid = uid, .partition = partition, .exclusive = exclusive},
	    expected);
}

static void test_jobs(void)
{
	static const char shared[] = "netem: only for jobs that have their nodes for themselves "
				     "(exclusive_only in FILE): ask for --exclusive (Slurm), "
				     "-n (Torque) or -l select=1:ncpus=1 -l place=scatter:excl "
				     "(OpenPBS)";

	is_job(people, 1234, "fast", SY_YES, "");
	is_job(people, 1234, "net,fast", SY_YES, "");
	is_job(people, 1234, NULL, SY_NOT_KNOWN, "");
	is_job(people, 1234, "slow", SY_YES,
	       "netem: not in partition slow: FILE allows other ones");
	is_job(people, 1234, "net,slow", SY_YES,
	       "netem: not in partition net,slow: FILE allows other ones");
	is_job(people, 1234, "fas", SY_YES, "netem: not in partition fas: FILE allows other ones");
	is_job(people, 0, "slow", SY_YES, "");
	is_job(people, 1234, "net", SY_NO, shared);
	is_job(people, 0, "net", SY_NO, shared);
	is_job("enabled yes\nexclusive_only no", 1234, "net", SY_NO, "");
}

static void test_others(void)
{
	const struct sy_requester shared = {.uid = 1000, .exclusive = SY_NO};
	struct sy_policy *policy = read_policy("enabled yes\nnetem no\ncache yes\n"
					       "cvmfs_quota_bytes 7\n"
					       "peer 2001:DB8::1");

	ok(sy_policy_allows_cache(policy, &nobody_knows, &err) == 0, "caches without netem");
	ok(sy_policy_allows_cache(policy, &shared, &err) < 0, "caches of others: %s", err.text);
	is_int(sy_policy_cvmfs_quota_bytes(policy), 7, "cvmfs_quota_bytes");
	is_string(sy_policy_peer(policy), "2001:db8::1", "peer");
	sy_policy_free(policy);
	policy = read_policy("enabled yes\n");
	ok(sy_policy_allows_cache(policy, &nobody_knows, &err) < 0, "%s", err.text);
	is_int(sy_policy_cvmfs_quota_bytes(policy), 0, "cvmfs_quota_bytes by default");
	sy_policy_free(policy);
	policy = read_policy("enabled no\ncache yes\n");
	ok(sy_policy_allows_cache(policy, &nobody_knows, &err) < 0, "off means all: %s", err.text);
	sy_policy_free(policy);
}

int main(void)
{
	if (!make_folder())
		return 1;
	test_people();
	test_jobs();
	test_others();
	remove_folder();
	return done_testing();
}
