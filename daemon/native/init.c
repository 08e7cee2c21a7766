/*
 * PID 1 of a branch: a static program without libc.
 *
 *	puzzled-init STATUS FLAGS ARGV0 [ARG...]
 *
 * The contract (arguments, records on descriptor STATUS, signals) is written down in daemon/contract/spawn.ts. In short:
 * start ARGV0 in a session of its own, forward signals to its process group, reap whatever is orphaned, report how the
 * agent ended, and end with it; the kernel then kills everything else in the PID namespace.
 *
 * It runs under the agent's seccomp filter, which therefore must allow: read, write, close, openat, pipe2, clone (flags SIGCHLD
 * only), execve, setsid, ioctl(TIOCSCTTY), close_range, rt_sigaction, rt_sigprocmask, rt_sigtimedwait, wait4, kill,
 * prctl, exit_group. It installs no handlers: every signal stays blocked and is taken from the queue, which also works
 * for a PID 1, to which the kernel does not deliver signals that have the default action.
 */
#include "syscall.h"
#include "search.h"

enum { STARTED = 1, EXEC_FAILED = 2, ENDED = 3, USER_MS = 4, SYSTEM_MS = 5, MAX_RSS_KIB = 6 };
enum { SIGHUP = 1, SIGINT = 2, SIGQUIT = 3, SIGUSR1 = 10, SIGUSR2 = 12, SIGTERM = 15, SIGCHLD = 17, SIGWINCH = 28 };
enum { WNOHANG = 1, PR_SET_DUMPABLE = 4 };
enum { TIOCSCTTY = 0x540e, CLOSE_RANGE_CLOEXEC = 4 };

struct rusage {
	long user_sec, user_usec, system_sec, system_usec, maxrss, rest[13];
};

static long status_fd;

/* Eight bytes into a pipe are written whole or not at all; a daemon that is gone reads nothing. */
static void report(int kind, long value)
{
	int record[2] = {kind, (int)value};
	while (call(NR_write, status_fd, (long)record, sizeof record, 0, 0, 0) == -EINTR)
		;
}

static void end(int status)
{
	call(NR_exit_group, status, 0, 0, 0, 0, 0);
	__builtin_trap();
}

static long number(const char *text)
{
	long value = 0;
	if (*text == 0)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || value > 100000)
			return -1;
		value = value * 10 + (*text - '0');
	}
	return value;
}

static void become_agent(int terminal, long failure_fd, char **argv, char **env)
{
	struct sigaction_raw fallback = {0};
	unsigned long none = 0;
	int error;

	call(NR_setsid, 0, 0, 0, 0, 0, 0);
	error = terminal ? (int)-call(NR_ioctl, 0, TIOCSCTTY, 0, 0, 0, 0) : 0;
	if (error == 0 && (error = (int)-call(NR_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC, 0, 0, 0)) == 0) {
		for (long signal = 1; signal <= 64; signal++)
			call(NR_rt_sigaction, signal, (long)&fallback, 0, 8, 0, 0);
		call(NR_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, 8, 0, 0);
		error = (int)-execute_in_path(argv, env);
	}
	call(NR_write, failure_fd, (long)&error, sizeof error, 0, 0, 0);
	end(127);
}

/* Reaps everything that has ended. When the agent is among it: the last records, and the end. */
static void reap(long agent)
{
	struct rusage usage;
	int status;
	long pid;

	while ((pid = call(NR_wait4, -1, (long)&status, WNOHANG, (long)&usage, 0, 0)) > 0) {
		if (pid != agent)
			continue;
		report(USER_MS, usage.user_sec * 1000 + usage.user_usec / 1000);
		report(SYSTEM_MS, usage.system_sec * 1000 + usage.system_usec / 1000);
		report(MAX_RSS_KIB, usage.maxrss);
		report(ENDED, status);
		end((status & 0x7f) == 0 ? status >> 8 & 0xff : 128 + (status & 0x7f));
	}
}

static __attribute__((noreturn)) void supervise(long agent)
{
	unsigned long all = ~0UL;
	for (;;) {
		long signal = call(NR_rt_sigtimedwait, (long)&all, 0, 0, 8, 0, 0);
		if (signal == SIGCHLD)
			reap(agent);
		else if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT ||
			 signal == SIGUSR1 || signal == SIGUSR2 || signal == SIGWINCH)
			call(NR_kill, -agent, signal, 0, 0, 0, 0);
	}
}

__attribute__((used, noreturn)) void puzzled_init(long *stack)
{
	long argc = stack[0];
	char **argv = (char **)(stack + 1), **env = argv + argc + 1;
	unsigned long all = ~0UL;
	int failure[2], error = 0;
	long agent;

	if (argc < 4 || (status_fd = number(argv[1])) < 3)
		end(125);
	/* An agent of the same uid could otherwise open /proc/1/fd/STATUS and forge the records. exec makes it dumpable again. */
	if (call(NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0) != 0)
		end(125);
	call(NR_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, 8, 0, 0);
	agent = call(NR_pipe2, (long)failure, O_CLOEXEC, 0, 0, 0, 0);
	if (agent == 0)
		agent = call(NR_clone, SIGCHLD, 0, 0, 0, 0, 0);
	if (agent == 0)
		become_agent(argv[2][0] == 't', failure[1], argv + 3, env);
	if (agent > 0) {
		call(NR_close, failure[1], 0, 0, 0, 0, 0);
		/* EOF says that exec closed the other end. */
		while (call(NR_read, failure[0], (long)&error, sizeof error, 0, 0, 0) == -EINTR)
			;
		call(NR_close, failure[0], 0, 0, 0, 0, 0);
	} else
		error = (int)-agent;
	report(error ? EXEC_FAILED : STARTED, error ? error : agent);
	if (error)
		end(error == ENOENT ? 127 : 126);
	supervise(agent);
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call puzzled_init\n ud2");
#else
__asm__(".globl _start\n_start: mov x29, xzr\n mov x30, xzr\n mov x0, sp\n bl puzzled_init\n brk #1");
#endif
