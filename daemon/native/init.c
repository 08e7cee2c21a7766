/*
 * PID 1 of a branch: a static program without libc.
 *
 *	puzzled-init STATUS FLAGS ARGV0 [ARG...]
 *
 * The contract (arguments, records on descriptor STATUS, signals, starts after the first) is written down in
 * daemon/contract/spawn.ts. In short: start ARGV0 in a session of its own, forward signals to its process group, reap
 * whatever is orphaned, report how the agent ended, start it again where FLAGS says so, and end with it; the kernel then
 * kills everything else in the PID namespace.
 *
 * It runs under the agent's seccomp filter, which therefore must allow: read, write, close, openat, pipe2, clone (flags SIGCHLD
 * only), execve, setsid, setpgid, getpid, fcntl (F_GETFL, F_SETFL), ioctl (TIOCSCTTY, TIOCSPGRP, TIOCNXCL, TCXONC, TCGETS,
 * TCSETS), close_range, rt_sigaction, rt_sigprocmask, rt_sigtimedwait, clock_gettime, wait4, kill, prctl, exit_group. It
 * installs no handlers: every signal stays blocked and is taken from the queue, which also works for a PID 1, to which the
 * kernel does not deliver signals that have the default action.
 */
#include "syscall.h"
#include "search.h"

enum { STARTED = 1, EXEC_FAILED = 2, ENDED = 3, USER_MS = 4, SYSTEM_MS = 5, MAX_RSS_KIB = 6, PAUSE_MS = 7, AGAIN = 8 };
enum { SIGHUP = 1, SIGINT = 2, SIGQUIT = 3, SIGKILL = 9, SIGUSR1 = 10, SIGUSR2 = 12, SIGTERM = 15, SIGCHLD = 17, SIGWINCH = 28 };
enum { SIGCONT = 18, SIGTSTP = 20, SIGTTIN = 21, SIGTTOU = 22 };
enum { WNOHANG = 1, WUNTRACED = 2, F_GETFL = 3, F_SETFL = 4, PR_SET_DUMPABLE = 4, CLOCK_MONOTONIC = 1 };
enum { TCGETS = 0x5401, TCSETS = 0x5402, TCXONC = 0x540a, TCOON = 1, TIOCNXCL = 0x540d, TIOCSCTTY = 0x540e, TIOCSPGRP = 0x5410, CLOSE_RANGE_CLOEXEC = 4 };
enum { FIRST_PAUSE_MS = 100, LONGEST_PAUSE_MS = 60000, HEALTHY_MS = 10000 };

struct rusage {
	long user_sec, user_usec, system_sec, system_usec, maxrss, rest[13];
};

struct timespec {
	long sec, nsec;
};

struct agent {
	char **argv, **env;
	int terminal;
	/* When it is started after it has ended: 0, 'f' after a failure, 'a' always. */
	char again;
	/* How often at most; negative: without end. */
	long left;
	/* Somebody asked it to end since it was started. */
	int asked;
};

static long status_fd;

/* Eight bytes into a pipe are written whole or not at all. Zero: nobody is left to read. */
static int report(int kind, long value)
{
	int record[2] = {kind, (int)value};
	long written;
	while ((written = call(NR_write, status_fd, (long)record, sizeof record, 0, 0, 0)) == -EINTR)
		;
	return written == sizeof record;
}

static __attribute__((noreturn)) void end(int status)
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

static long now(void)
{
	struct timespec time = {0};
	call(NR_clock_gettime, CLOCK_MONOTONIC, (long)&time, 0, 0, 0, 0);
	return time.sec * 1000 + time.nsec / 1000000;
}

/* Every signal is blocked here, also the one that a process in the background gets for this. */
static long to_foreground(long pid)
{
	int group = (int)pid;
	return call(NR_ioctl, 0, TIOCSPGRP, (long)&group, 0, 0, 0);
}

/*
 * An agent that is started once leads a session. One that is started again is a process group in the session of init, as
 * in a shell: between two starts init is in the foreground, and who types ^C there ends the branch.
 */
static long take_place(const struct agent *agent)
{
	long error;
	if (!agent->again || !agent->terminal) {
		call(NR_setsid, 0, 0, 0, 0, 0, 0);
		return agent->terminal ? call(NR_ioctl, 0, TIOCSCTTY, 0, 0, 0, 0) : 0;
	}
	error = call(NR_setpgid, 0, 0, 0, 0, 0, 0);
	return error ? error : to_foreground(call(NR_getpid, 0, 0, 0, 0, 0, 0));
}

static void become_agent(const struct agent *agent, long failure_fd)
{
	struct sigaction_raw fallback = {0};
	unsigned long none = 0;
	int error = (int)-take_place(agent);

	if (error == 0 && (error = (int)-call(NR_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC, 0, 0, 0)) == 0) {
		for (long signal = 1; signal <= 64; signal++)
			call(NR_rt_sigaction, signal, (long)&fallback, 0, 8, 0, 0);
		call(NR_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, 8, 0, 0);
		error = (int)-execute_in_path(agent->argv, agent->env);
	}
	call(NR_write, failure_fd, (long)&error, sizeof error, 0, 0, 0);
	end(127);
}

/* Returns its pid, or does not return. */
static long start(const struct agent *agent)
{
	int failure[2], error = 0;
	long pid = call(NR_pipe2, (long)failure, O_CLOEXEC, 0, 0, 0, 0);
	if (pid == 0)
		pid = call(NR_clone, SIGCHLD, 0, 0, 0, 0, 0);
	if (pid == 0)
		become_agent(agent, failure[1]);
	if (pid > 0) {
		call(NR_close, failure[1], 0, 0, 0, 0, 0);
		/* EOF says that exec closed the other end. */
		while (call(NR_read, failure[0], (long)&error, sizeof error, 0, 0, 0) == -EINTR)
			;
		call(NR_close, failure[0], 0, 0, 0, 0, 0);
	} else
		error = (int)-pid;
	report(error ? EXEC_FAILED : STARTED, error ? error : pid);
	if (error)
		end(error == ENOENT ? 127 : 126);
	return pid;
}

/*
 * As the leader of a session it would not have been stopped by its terminal, as there is no shell that could let it go on.
 * One that asked for the terminal while another group had it gets it, or it would ask for ever.
 */
static void go_on(long pid, int stopped_by)
{
	if (stopped_by != SIGTSTP && stopped_by != SIGTTIN && stopped_by != SIGTTOU)
		return;
	if (stopped_by != SIGTSTP)
		to_foreground(pid);
	call(NR_kill, -pid, SIGCONT, 0, 0, 0, 0);
}

/* Reaps everything that has ended. When the agent is among it: what it used is told, and its status taken. */
static int reap(const struct agent *agent, long its_pid, int *its_status)
{
	struct rusage usage;
	int status, found = 0, options = agent->again && agent->terminal ? WNOHANG | WUNTRACED : WNOHANG;
	long pid;

	while ((pid = call(NR_wait4, -1, (long)&status, options, (long)&usage, 0, 0)) > 0) {
		if (pid != its_pid)
			continue;
		if ((status & 0xff) == 0x7f) {
			go_on(pid, status >> 8 & 0xff);
			continue;
		}
		report(USER_MS, usage.user_sec * 1000 + usage.user_usec / 1000);
		report(SYSTEM_MS, usage.system_sec * 1000 + usage.system_usec / 1000);
		report(MAX_RSS_KIB, usage.maxrss);
		*its_status = status;
		found = 1;
	}
	return found;
}

static int asks_to_end(long signal)
{
	return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

/* Until it has ended; returns its status as wait4 gives it. */
static int hold(struct agent *agent, long pid)
{
	unsigned long all = ~0UL;
	int status = 0;
	agent->asked = 0;
	for (;;) {
		long signal = call(NR_rt_sigtimedwait, (long)&all, 0, 0, 8, 0, 0);
		if (signal == SIGCHLD) {
			if (reap(agent, pid, &status))
				return status;
		} else if (asks_to_end(signal) || signal == SIGUSR1 || signal == SIGUSR2 || signal == SIGWINCH) {
			agent->asked |= asks_to_end(signal);
			call(NR_kill, -pid, signal, 0, 0, 0, 0);
		}
	}
}

/* Reaps what has ended; whether nothing is left that could. */
static int alone(void)
{
	int unused;
	long pid;
	while ((pid = call(NR_wait4, -1, (long)&unused, WNOHANG, 0, 0, 0)) > 0)
		;
	return pid < 0;
}

/*
 * Until so much time has passed and what was killed is gone; what comes into the pause later may stay. Zero: somebody
 * wants the end.
 */
static int rest(long milliseconds)
{
	unsigned long all = ~0UL;
	long until = now() + milliseconds;
	int gone = 0;
	for (;;) {
		long left = until - now(), signal;
		struct timespec time = {left / 1000, left % 1000 * 1000000};
		if (alone())
			gone = 1;
		if (left <= 0 && gone)
			return 1;
		signal = call(NR_rt_sigtimedwait, (long)&all, 0, left > 0 ? (long)&time : 0, 8, 0, 0);
		if (asks_to_end(signal))
			return 0;
	}
}

static int wants_again(const struct agent *agent, int status)
{
	return agent->again && agent->left != 0 && !agent->asked && !asks_to_end(status & 0x7f) &&
	       (agent->again == 'a' || status != 0);
}

/* Of the open files that all starts share, what an agent can leave so that the next one cannot work with them. */
struct streams {
	long flags[3];
	/* The kernel's struct termios and more. */
	char modes[64];
};

static void remember(const struct agent *agent, struct streams *first)
{
	for (long stream = 0; stream < 3; stream++)
		first->flags[stream] = call(NR_fcntl, stream, F_GETFL, 0, 0, 0, 0);
	if (agent->terminal)
		call(NR_ioctl, 0, TCGETS, (long)first->modes, 0, 0, 0);
}

static void put_back(const struct agent *agent, const struct streams *first)
{
	for (long stream = 0; stream < 3; stream++)
		if (call(NR_fcntl, stream, F_GETFL, 0, 0, 0, 0) != first->flags[stream])
			call(NR_fcntl, stream, F_SETFL, first->flags[stream], 0, 0, 0);
	if (!agent->terminal)
		return;
	call(NR_ioctl, 0, TIOCNXCL, 0, 0, 0, 0);
	call(NR_ioctl, 0, TCXONC, TCOON, 0, 0, 0);
	call(NR_ioctl, 0, TCSETS, (long)first->modes, 0, 0, 0);
	to_foreground(call(NR_getpid, 0, 0, 0, 0, 0, 0));
}

static __attribute__((noreturn)) void supervise(struct agent *agent)
{
	struct streams first = {0};
	long pause = FIRST_PAUSE_MS;
	int status;
	if (agent->again)
		remember(agent, &first);
	for (;;) {
		long began, pid = start(agent);
		began = now();
		status = hold(agent, pid);
		if (!wants_again(agent, status))
			break;
		if (now() - began >= HEALTHY_MS)
			pause = FIRST_PAUSE_MS;
		/* As with a container that is started anew: nothing of the last time runs beside the next. */
		call(NR_kill, -1, SIGKILL, 0, 0, 0, 0);
		put_back(agent, &first);
		/* Said once more after it: a daemon that was killed meanwhile holds no agent that is started now. */
		if (!report(PAUSE_MS, pause) || !report(AGAIN, status) || !rest(pause) || !report(PAUSE_MS, 0))
			break;
		agent->left -= agent->left > 0;
		pause = pause * 2 < LONGEST_PAUSE_MS ? pause * 2 : LONGEST_PAUSE_MS;
	}
	report(ENDED, status);
	end((status & 0x7f) == 0 ? status >> 8 & 0xff : 128 + (status & 0x7f));
}

/* `t` or `-`, then nothing, `f` or `a`, and how often at most. Zero: anything else. */
static int read_flags(const char *flags, struct agent *agent)
{
	if (flags[0] != 't' && flags[0] != '-')
		return 0;
	agent->terminal = flags[0] == 't';
	if (flags[1] == 0)
		return 1;
	if (flags[1] != 'f' && flags[1] != 'a')
		return 0;
	agent->again = flags[1];
	agent->left = flags[2] == 0 ? -1 : number(flags + 2);
	/* Only as PID 1: it ends all that is left, and must not mean the host's processes. */
	return (flags[2] == 0 || agent->left >= 0) && call(NR_getpid, 0, 0, 0, 0, 0, 0) == 1;
}

__attribute__((used, noreturn)) void puzzled_init(long *stack)
{
	long argc = stack[0], error;
	char **argv = (char **)(stack + 1);
	struct agent agent = {argv + 3, argv + argc + 1, 0, 0, 0, 0};
	unsigned long all = ~0UL;

	if (argc < 4 || (status_fd = number(argv[1])) < 3 || !read_flags(argv[2], &agent))
		end(125);
	/* An agent of the same uid could otherwise open /proc/1/fd/STATUS and forge the records. exec makes it dumpable again. */
	if (call(NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0) != 0)
		end(125);
	call(NR_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, 8, 0, 0);
	if (agent.again && agent.terminal && (error = call(NR_ioctl, 0, TIOCSCTTY, 0, 0, 0, 0)) != 0) {
		report(EXEC_FAILED, -error);
		end(126);
	}
	supervise(&agent);
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call puzzled_init\n ud2");
#else
__asm__(".globl _start\n_start: mov x29, xzr\n mov x30, xzr\n mov x0, sp\n bl puzzled_init\n brk #1");
#endif
