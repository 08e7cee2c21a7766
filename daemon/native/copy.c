/*
 * Copies between a pipe and a descriptor of another process: a static program without libc, beside the daemon.
 *
 *	puzzled-copy PID PIDFD NUMBER SIDE UID GID
 *
 * What a caller hands over as a file or a socket may make whoever reads, writes or closes it wait for as long as the
 * caller likes (FUSE, SO_LINGER, descriptors that wait in a socket). It is this process that waits then; the daemon never
 * has it. Descriptor NUMBER of process PID, which is behind PIDFD, is taken and becomes 0 (SIDE is 0: the pipe is at 1) or
 * 1 (the pipe is at 0). What statx says of it is written to descriptor 2; SIGUSR1 says that it may be used. Every signal is
 * blocked.
 * The exit status is the errno of the call that failed, 0 at the end.
 */
#include "syscall.h"

enum { EINTR = 4, EIO = 5, EAGAIN = 11, EACCES = 13, EINVAL = 22, EPROTOTYPE = 91, POLLIN = 1, POLLOUT = 4 };
enum { SIGKILL = 9, SIGUSR1 = 10, PR_SET_PDEATHSIG = 1, PR_SET_DUMPABLE = 4, PR_SET_NO_NEW_PRIVS = 38, SIZE = 65536 };

enum { SOL_SOCKET = 1, SO_TYPE = 3, SO_ACCEPTCONN = 30, SOCK_STREAM = 1 };

enum { AT_FDCWD = -100, AT_EMPTY_PATH = 0x1000, AT_STATX_DONT_SYNC = 0x4000, O_CLOEXEC = 02000000 };
enum { STATX_UID_GID = 0x18, STATX_BASIC_STATS = 0x7ff, STATX_SIZE = 256 };

struct pollfd {
	int fd;
	short events, found;
};

static char bytes[SIZE];

static __attribute__((noreturn)) void end(long status)
{
	call(NR_exit_group, status, 0, 0, 0, 0, 0);
	__builtin_trap();
}

static void must(long result)
{
	if (result < 0)
		end(-result);
}

/* Up to 32 bits, as uids have. */
static long number(const char *text)
{
	long value = 0;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || value > 0xffffffffL)
			end(EINVAL);
		value = value * 10 + (*text - '0');
	}
	return value;
}

static const char *in_proc(const char *pid, const char *what)
{
	static char path[64];
	const char *parts[] = {"/proc/", pid, what};
	unsigned long at = 0;
	for (int part = 0; part < 3; part++)
		for (const char *from = parts[part]; *from; from++) {
			if (at == sizeof path - 1)
				end(EINVAL);
			path[at++] = *from;
		}
	path[at] = 0;
	return path;
}

/* Of a program that has more rights than its user (setuid, setgid, capabilities), and of its files in /proc, root is the owner. */
static void must_be_of(const char *pid, unsigned uid, unsigned gid)
{
	/* The kernel's struct statx. */
	unsigned facts[64] = {0};
	must(call(NR_statx, AT_FDCWD, (long)in_proc(pid, "/fd"), 0, STATX_UID_GID, (long)facts, 0));
	if (facts[5] != uid || facts[6] != gid)
		end(EACCES);
}

struct caller {
	const char *pid;
	long pidfd, descriptor, uid, gid;
};

/*
 * A caller that becomes a program with more rights has that program's files, and may be itself again in a moment. So it must
 * be one and the same program before and after: its memory, opened first, can be read as long as it has not executed another.
 */
static void take(const struct caller *caller, long side)
{
	long memory, taken;
	/* Nothing else may get this number until it is needed. */
	must(call(NR_dup3, 2, side, 0, 0, 0, 0));
	must(memory = call(NR_openat, AT_FDCWD, (long)in_proc(caller->pid, "/maps"), O_CLOEXEC, 0, 0, 0));
	must_be_of(caller->pid, caller->uid, caller->gid);
	call(NR_close, side, 0, 0, 0, 0, 0);
	/* The lowest that is free. */
	must(taken = call(NR_pidfd_getfd, caller->pidfd, caller->descriptor, 0, 0, 0, 0));
	if (taken != side)
		end(EIO);
	if (call(NR_read, memory, (long)bytes, 1, 0, 0, 0) != 1)
		end(EACCES);
	must_be_of(caller->pid, caller->uid, caller->gid);
	call(NR_close, memory, 0, 0, 0, 0, 0);
	call(NR_close, caller->pidfd, 0, 0, 0, 0, 0);
}

/* Whether bytes can be read from it and written to it one after the other: no datagrams, nobody to accept. */
static void must_be_stream(long side)
{
	int type = 0, listens = 0, length = sizeof type;
	if (call(NR_getsockopt, side, SOL_SOCKET, SO_TYPE, (long)&type, (long)&length, 0) < 0)
		return;
	length = sizeof listens;
	must(call(NR_getsockopt, side, SOL_SOCKET, SO_ACCEPTCONN, (long)&listens, (long)&length, 0));
	if (type != SOCK_STREAM || listens)
		end(EPROTOTYPE);
}

/* The caller's rights, and none of root's. */
static void become(long uid, long gid)
{
	must(call(NR_setgroups, 0, 0, 0, 0, 0, 0));
	must(call(NR_setresgid, gid, gid, gid, 0, 0, 0));
	must(call(NR_setresuid, uid, uid, uid, 0, 0, 0));
	must(call(NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0));
	/* Both were undone by the change. Nobody of that uid shall put code of their own into a process of the daemon's. */
	must(call(NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0));
	must(call(NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0));
}

static void wait_until_wanted(void)
{
	unsigned long wanted = 1UL << (SIGUSR1 - 1);
	while (call(NR_rt_sigtimedwait, (long)&wanted, 0, 0, 8, 0, 0) != SIGUSR1)
		;
}

/* The result of one read or write that did something, or its error. Open files are shared, also when they do not block. */
static long move(long nr, int fd, char *at, long length)
{
	for (;;) {
		struct pollfd wanted = {fd, nr == NR_read ? POLLIN : POLLOUT, 0};
		long result = call(nr, fd, (long)at, length, 0, 0, 0);
		if (result == -EAGAIN)
			result = call(NR_ppoll, (long)&wanted, 1, 0, 0, 0, 0);
		else if (result != -EINTR)
			return result;
		if (result < 0 && result != -EINTR)
			return result;
	}
}

/* As its user: the server of a file may tell nobody else. It need not be asked: neither type nor identity changes. */
static void tell(long side)
{
	must(call(NR_statx, side, (long)"", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, (long)bytes, 0));
	must(move(NR_write, 2, bytes, STATX_SIZE));
}

__attribute__((used, noreturn)) void puzzled_copy(long *stack)
{
	char **argv = (char **)(stack + 1);
	if (stack[0] != 7)
		end(EINVAL);
	struct caller caller = {argv[1], number(argv[2]), number(argv[3]), number(argv[5]), number(argv[6])};
	take(&caller, number(argv[4]));
	must_be_stream(number(argv[4]));
	become(caller.uid, caller.gid);
	tell(number(argv[4]));
	wait_until_wanted();
	for (;;) {
		long length = move(NR_read, 0, bytes, SIZE), done = 0, result;
		if (length <= 0)
			end(-length);
		for (; done < length; done += result)
			if ((result = move(NR_write, 1, bytes + done, length - done)) <= 0)
				end(result < 0 ? -result : EIO);
	}
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call puzzled_copy\n ud2");
#else
__asm__(".globl _start\n_start: mov x29, xzr\n mov x30, xzr\n mov x0, sp\n bl puzzled_copy\n brk #1");
#endif
