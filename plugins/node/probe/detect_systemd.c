#include "probe/detect_systemd.h"

#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define TIME_LIMIT_MS 1000

/* Names as they live in this program; what is not among them is told as "other". */
static const char *const vm_names[] = {
    "qemu",    "kvm",	"amazon", "zvm",    "vmware",	 "microsoft", "oracle",
    "powervm", "xen",	"bochs",  "uml",    "parallels", "bhyve",     "qnx",
    "acrn",    "apple", "sre",	  "google", "none",
};

static const char *const container_names[] = {
    "openvz", "lxc", "lxc-libvirt", "systemd-nspawn", "docker", "podman",
    "rkt",    "wsl", "proot",	    "pouch",	      "none",
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const char *known(const char *const *names, size_t count, const char *name,
			 const char *other)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return names[i];
	return other;
}

static int start(const char *layer, int out, pid_t *pid)
{
	char *const argv[] = {(char *)"systemd-detect-virt", (char *)layer, NULL};
	char *const env[] = {(char *)"PATH=/usr/bin:/bin", (char *)"LC_ALL=C", NULL};
	posix_spawn_file_actions_t actions;
	int result;

	if (posix_spawn_file_actions_init(&actions))
		return -1;
	result = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO) ||
			 posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
							  O_WRONLY, 0) ||
			 posix_spawn(pid, "/usr/bin/systemd-detect-virt", &actions, NULL, argv, env)
		     ? -1
		     : 0;
	(void)posix_spawn_file_actions_destroy(&actions);
	return result;
}

/* Its one line, until it closes the pipe or the time is over. */
static size_t read_answer(int in, char *answer, size_t size)
{
	struct pollfd wait_for = {.fd = in, .events = POLLIN};
	int64_t end_ms = sy_now_ms(CLOCK_MONOTONIC) + TIME_LIMIT_MS, left_ms;
	size_t used = 0;

	while (used < size - 1 && (left_ms = end_ms - sy_now_ms(CLOCK_MONOTONIC)) > 0 &&
	       poll(&wait_for, 1, (int)left_ms) > 0) {
		ssize_t got = read(in, answer + used, size - 1 - used);

		if (got <= 0)
			break;
		used += (size_t)got;
	}
	answer[used] = '\0';
	used = strcspn(answer, "\n");
	if (answer[used] != '\n') /* cut off: no answer */
		return 0;
	answer[used] = '\0';
	return used;
}

static size_t ask(const char *layer, char *answer, size_t size)
{
	size_t length;
	pid_t pid;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return 0;
	if (start(layer, ends[1], &pid)) {
		(void)close(ends[0]);
		(void)close(ends[1]);
		return 0;
	}
	(void)close(ends[1]);
	length = read_answer(ends[0], answer, size);
	(void)close(ends[0]);
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return length;
}

void sy_ask_systemd(struct sy_layer *vm, struct sy_layer *container)
{
	char answer[64];

	if (ask("--vm", answer, sizeof(answer)))
		sy_witness(vm, 2, known(vm_names, COUNT(vm_names), answer, "vm-other"),
			   "systemd-detect-virt --vm", answer);
	/* It believes /.dockerenv at once: it must not make one witness of it into two. */
	if (ask("--container", answer, sizeof(answer)))
		sy_witness(
		    container, 1,
		    known(container_names, COUNT(container_names), answer, "container-other"),
		    "systemd-detect-virt --container", answer);
}
