#include "meters/slow_readings.h"

#include "base/clock.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

struct sy_slow *sy_slow_create(void)
{
	struct sy_slow *slow =
	    mmap(NULL, sizeof(*slow), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (slow == MAP_FAILED)
		return NULL;
	slow->request_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (slow->request_fd >= 0)
		return slow;
	(void)munmap(slow, sizeof(*slow));
	return NULL;
}

void sy_slow_write(struct sy_slow *slow, int meter, const struct sy_energy *energy)
{
	atomic_fetch_add(&slow->version, 1);
	slow->energy[meter] = *energy;
	atomic_fetch_add(&slow->version, 1);
}

void sy_slow_read(const struct sy_slow *slow, int meter, struct sy_energy *energy)
{
	for (int tries = 0; tries < 3; tries++) {
		unsigned before = atomic_load(&slow->version);
		struct sy_energy copy = slow->energy[meter];

		atomic_thread_fence(memory_order_acquire);
		if (before % 2 || atomic_load(&slow->version) != before)
			continue;
		*energy = copy;
		return;
	}
}

void sy_slow_request(struct sy_slow *slow, int64_t most_us)
{
	int64_t until = sy_now_us(CLOCK_MONOTONIC) + most_us;
	uint64_t one = 1;
	unsigned question;

	if (!slow)
		return;
	question = atomic_fetch_add(&slow->requested, 1) + 1;
	if (write(slow->request_fd, &one, sizeof(one)) != sizeof(one))
		return;
	while (atomic_load(&slow->answered) != question && sy_now_us(CLOCK_MONOTONIC) < until)
		(void)poll(NULL, 0, 1);
}
