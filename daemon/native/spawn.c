/*
 * The clone3 trampoline: runs a list of system calls, given as data, in a child between clone and exec.
 *
 * JavaScript cannot run in a forked child of Node, so daemon/kernel/clone.ts lays out the arrays below and calls
 * puzzled_spawn() on a worker thread. There is no policy here, no libc and no global state; what happens is decided
 * by the list. The caller passes CLONE_VM|CLONE_VFORK: the child borrows our memory, runs on a stack of its own, and the
 * calling thread sleeps until the child has executed a program or is gone, so what it left in the plan can be read.
 *
 * The child is born before its list is ready and waits at a gate in the plan, so that the daemon plans while the kernel
 * makes the namespaces. It is let go by puzzled_open(), with the list or without one, and gives up by itself when nobody
 * comes: a daemon that is killed in between leaves nobody who waits forever.
 *
 * No signal handler of Node may ever run in the child, whose memory is Node's: every signal is blocked before the clone
 * and unblocked in the child only when every disposition is the default, ignored ones included.
 */
#include "syscall.h"

struct op {
	long nr, args[6];
	long min, max; /* results that let the walk go on */
	long result;
};

/* After op number `from`, the low half of its result is written to `to`: an argument, or a word in a structure. */
struct store {
	long from;
	unsigned *to;
};

struct plan {
	struct op *ops;
	long count;
	struct store *stores; /* sorted by `from` */
	long at;              /* the op that is being run; -1 before the first */
	long returned;        /* the walk ended without executing a program */
	int pidfd;
	int gate;             /* all of the above may be read when it is OPEN */
};

enum { CLOSED = 0, OPEN = 1, REFUSED = 2 };
enum { FUTEX_WAIT = 128, FUTEX_WAKE = 129 }; /* private: the child has our memory */
enum { ETIMEDOUT = 110, SIGKILL = 9, PR_SET_PDEATHSIG = 1 };

/* A test has less of it. */
#ifndef PATIENCE_SECONDS
#define PATIENCE_SECONDS 30
#endif

struct clone_args {
	unsigned long flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	unsigned long set_tid, set_tid_size, cgroup;
};

enum { GUARD = 65536, STACK = 65536 };

static int wait_at_gate(struct plan *plan)
{
	long patience[2] = {PATIENCE_SECONDS, 0};
	int gate;

	while ((gate = __atomic_load_n(&plan->gate, __ATOMIC_ACQUIRE)) == CLOSED)
		if (call(NR_futex, (long)&plan->gate, FUTEX_WAIT, CLOSED, (long)patience, 0, 0) == -ETIMEDOUT)
			return 0;
	return gate == OPEN;
}

__attribute__((used, noreturn, visibility("hidden"))) void puzzled_child(struct plan *plan)
{
	struct sigaction_raw fallback = {0};
	unsigned long none = 0;
	struct store *store;

	for (long signal = 1; signal <= 64; signal++)
		call(NR_rt_sigaction, signal, (long)&fallback, 0, 8, 0, 0);
	call(NR_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, 8, 0, 0);
	plan->at = -1;
	/* Nobody opens the gate of a daemon that was killed, whose locks would be held here until patience ends. */
	call(NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
	store = wait_at_gate(plan) ? plan->stores : 0;
	call(NR_prctl, PR_SET_PDEATHSIG, 0, 0, 0, 0, 0);
	for (long i = 0; store != 0 && i < plan->count; i++) {
		struct op *op = &plan->ops[i];
		long *a = op->args;
		plan->at = i;
		op->result = call(op->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
		if (op->result < op->min || op->result > op->max)
			break;
		for (; store->from == i; store++)
			*store->to = (unsigned)op->result;
	}
	plan->returned = 1;
	for (;;)
		call(NR_exit_group, 125, 0, 0, 0, 0, 0);
}

/* The child's pid, or the negative errno of what could not be prepared. `stores` ends with from = -1. */
__attribute__((visibility("default"))) long puzzled_spawn(struct plan *plan, struct clone_args *args)
{
	unsigned long all = ~0UL, before;
	long area = call(NR_mmap, 0, GUARD + STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long pid;

	if (area < 0 && area > -4096)
		return area;
	pid = call(NR_mprotect, area + GUARD, STACK, PROT_READ | PROT_WRITE, 0, 0, 0);
	if (pid == 0) {
		args->stack = area + GUARD;
		args->stack_size = STACK;
		call(NR_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, 8, 0, 0);
		pid = clone_and_call(args, sizeof *args, plan);
		call(NR_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, 8, 0, 0);
	}
	call(NR_munmap, area, GUARD + STACK, 0, 0, 0, 0);
	return pid;
}

/* Lets the child go, before it is born or while it waits: along the list, or (REFUSED) to its end. */
__attribute__((visibility("default"))) void puzzled_open(struct plan *plan, int how)
{
	__atomic_store_n(&plan->gate, how, __ATOMIC_RELEASE);
	call(NR_futex, (long)&plan->gate, FUTEX_WAKE, 1, 0, 0, 0);
}
