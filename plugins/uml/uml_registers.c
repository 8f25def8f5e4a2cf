/* Preloaded into User Mode Linux, whose kernels before 6.13 keep 2696 bytes of a processor's
 * registers: all up to AVX-512 and protection keys. A processor with AMX has 11 kB of them, and
 * Linux takes nothing but the whole (xstateregs_set in arch/x86/kernel/fpu/regset.c: EFAULT), so
 * that such a guest dies at its first process. Here what is set is put over what is there. No
 * guest's program has tiles: it would have to ask (arch_prctl), and User Mode Linux says no.
 */
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

/* XSTATE_BV: which components are in use (Intel SDM volume 1, 13.4.2). UML's part of the area ends
 * with component 9, protection keys; higher ones stay as they were. */
#define USED_AT	    512
#define KEPT_BY_UML ((uint64_t)0x3ff)
#define WHOLE_MAX   65536

typedef long ptrace_call(int request, pid_t pid, void *address, void *data);

static ptrace_call *next_ptrace(void)
{
	static ptrace_call *next;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "ptrace");
	if (!next)
		abort();
	return next;
}

static long set_registers(pid_t pid, struct iovec *given)
{
	static _Alignas(64) unsigned char whole[WHOLE_MAX];
	struct iovec all = {whole, sizeof(whole)};
	void *kind = (void *)(uintptr_t)NT_X86_XSTATE;
	uint64_t before, used;

	if (next_ptrace()(PTRACE_GETREGSET, pid, kind, &all) < 0)
		return -1;
	if (given->iov_len >= all.iov_len || given->iov_len < USED_AT + sizeof(used))
		return next_ptrace()(PTRACE_SETREGSET, pid, kind, given);
	memcpy(&before, whole + USED_AT, sizeof(before));
	memcpy(whole, given->iov_base, given->iov_len);
	memcpy(&used, whole + USED_AT, sizeof(used));
	used = (used & KEPT_BY_UML) | (before & ~KEPT_BY_UML);
	memcpy(whole + USED_AT, &used, sizeof(used));
	return next_ptrace()(PTRACE_SETREGSET, pid, kind, &all);
}

long ptrace(enum __ptrace_request request, ...)
{
	va_list rest;
	void *address, *data;
	pid_t pid;

	va_start(rest, request);
	pid = va_arg(rest, pid_t);
	address = va_arg(rest, void *);
	data = va_arg(rest, void *);
	va_end(rest);
	if (request == PTRACE_SETREGSET && (uintptr_t)address == NT_X86_XSTATE)
		return set_registers(pid, data);
	return next_ptrace()((int)request, pid, address, data);
}
