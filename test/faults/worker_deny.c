/* SPDX-License-Identifier: BSD-3-Clause */
/* What a container's seccomp profile does: the kernel refuses some system calls, from one moment on. */
#include "worker.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct group {
	const char *name;
	long calls[3];
	int n;
} groups[] = {
	{"cma", {SYS_process_vm_readv, SYS_process_vm_writev}, 2},
	{"pidfd", {SYS_pidfd_open, SYS_pidfd_getfd, SYS_pidfd_send_signal}, 3},
	{"membarrier", {SYS_membarrier}, 1},
};

void deny_calls(const char *name)
{
	const struct group *g = NULL;
	struct sock_filter code[16];
	struct sock_fprog prog = {.filter = code};
	unsigned short n = 0;

	for (size_t i = 0; name && i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (!strcmp(groups[i].name, name))
			g = &groups[i];
	}
	if (!g)
		wrong("--deny %s is not one of: cma pidfd membarrier", name ? name : "(none)");
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < g->n; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)g->calls[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	prog.len = n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog))
		wrong("seccomp: %s", strerror(errno));
	if (g->calls[0] == SYS_process_vm_readv &&
		(syscall(SYS_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0) != -1 || errno != EPERM))
		wrong("process_vm_readv is still allowed");
	say("denied %s", name);
}
