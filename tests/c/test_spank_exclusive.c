/* Whether a job has its node for itself, by the real spank_steelyard.so. argv[1]: the plugin. */
#include "tap.h"

#if !__has_include(<slurm/spank.h>)
int main(void)
{
	(void)puts("1..0 # SKIP no slurm/spank.h here (Debian: libslurm-dev)");
	return 0;
}
#else

#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "spank_host.h"

static char notes[96];

/* In place of steelyard-node: it writes down how it was called. */
static void write_program(void)
{
	char path[96];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/node", dir);
	file = fopen(path, "w");
	if (!file)
		return;
	(void)fprintf(file, "#!/bin/sh\necho \"$*\" > %s.new && mv %s.new %s\n", notes, notes,
		      notes);
	(void)fclose(file);
	(void)chmod(path, 0700);
}

/* "yes", "no", or "" where the sampler received nothing about it. */
static const char *read_sent_exclusive(const char *path)
{
	static char text[4096];
	const struct timespec pause = {.tv_nsec = 5000000};
	void *plugin = load(path, S_CTX_REMOTE, SLURM_EXTERN_CONT);
	const char *at, *last = "";
	FILE *file = NULL;
	size_t length = 0;

	(void)call(plugin, "slurm_spank_init_post_opt");
	for (int i = 0; i < 12000 && !(file = fopen(notes, "r")); i++)
		(void)nanosleep(&pause, NULL);
	if (file) {
		length = fread(text, 1, sizeof(text) - 1, file);
		(void)fclose(file);
	}
	text[length] = '\0';
	(void)unlink(notes);
	(void)dlclose(plugin);
	for (at = text; (at = strstr(at, "--job exclusive=")); at++)
		last = strncmp(at + strlen("--job exclusive="), "yes", 3) == 0 ? "yes" : "no";
	return length ? last : "no sampler was started";
}

static void new_slurmd(const char *path)
{
	void *plugin = load(path, S_CTX_SLURMD, 0);

	(void)dlclose(plugin);
}

static void test_cores(const char *path)
{
	job_cores = "0-7";
	is_string(read_sent_exclusive(path), "", "slurmctld does not answer: not said");
	accounting = "[ \"$*\" = '--cores n9' ] && echo 8";
	job_cores = "0-3";
	is_string(read_sent_exclusive(path), "no", "half of it");
	job_cores = "0-7";
	is_string(read_sent_exclusive(path), "yes", "all of it");
	accounting = "exit 3";
	is_string(read_sent_exclusive(path), "yes", "slurmctld is asked once");
	accounting = "[ \"$*\" = '--cores n9' ] && echo 6";
	job_cores = "0-5";
	is_string(read_sent_exclusive(path), "no", "as long as slurmd lives");
	new_slurmd(path);
	is_string(read_sent_exclusive(path), "yes", "all but the specialized cores");
	job_cores = "0-4";
	is_string(read_sent_exclusive(path), "no", "one core less");
}

/* As OverSubscribe=FORCE allows it. */
static void test_company(const char *path)
{
	struct sockaddr_un other = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char message[64] = "";

	(void)snprintf(other.sun_path, sizeof(other.sun_path), "%s/run/n9.4712.sock", dir);
	is_int(bind(fd, (struct sockaddr *)&other, sizeof(other)), 0, "another job's sampler");
	job_cores = "0-5";
	is_string(read_sent_exclusive(path), "no", "not alone, though it has all cores");
	(void)recv(fd, message, sizeof(message) - 1, MSG_DONTWAIT);
	is_string(message, "exclusive no", "and the other one is told");
	(void)shutdown(fd, SHUT_RD);
	is_string(read_sent_exclusive(path), "yes", "one that takes its last sample is no company");
	(void)close(fd);
	is_string(read_sent_exclusive(path), "yes", "nor one that has ended");
}

int main(int argc, char **argv)
{
	if (geteuid() != 0 || unshare(CLONE_NEWUTS) < 0 || sethostname("n9", 2) < 0) {
		(void)puts("1..0 # SKIP needs root, to be a host named as its node");
		return 0;
	}
	if (!ok(argc > 1 && make_folder(), "a folder"))
		return done_testing();
	(void)snprintf(notes, sizeof(notes), "%s/told", dir);
	write_program();
	test_cores(argv[1]);
	test_company(argv[1]);
	ok(remove_folder(), "tidy");
	return done_testing();
}

#endif
