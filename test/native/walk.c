/*
 * Drives native/spawn.c from C, for machines where Node does not run: every part of the walk, and the clone itself where
 * the machine has clone3 (qemu-user has not). Prints one line per fact; the test that compiles this compares them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct op { long nr, args[6], min, max, result; };
struct store { long from; unsigned *to; };
struct plan { struct op *ops; long count; struct store *stores; long at, returned; int pidfd, gate; };
struct clone_args { unsigned long flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup; };
extern void puzzled_child(struct plan *plan) __attribute__((noreturn));
extern long puzzled_spawn(struct plan *plan, struct clone_args *args);
extern void puzzled_open(struct plan *plan, int how);

enum { OK_MAX = 0x7fffffff, CLOSED = 0, OPEN = 1, REFUSED = 2 };

static struct shared {
	struct op ops[8];
	struct store stores[8];
	struct plan plan;
	unsigned words[2];
	char text[16];
} *shared;

static void set(int index, long nr, long a, long b, long c, long min, long max)
{
	shared->ops[index] = (struct op){nr, {a, b, c}, min, max, 0};
}

static void prepare(long count)
{
	shared->plan = (struct plan){shared->ops, count, shared->stores, 0, 0, -1, 0};
	puzzled_open(&shared->plan, OPEN);
	memset(shared->stores, 0xff, sizeof shared->stores);
}

/* Walks in a forked child with shared memory; the result is its wait status. */
static int walk(void)
{
	int status;
	pid_t pid = fork();
	if (pid == 0)
		puzzled_child(&shared->plan);
	waitpid(pid, &status, 0);
	return status;
}

static void clones(void)
{
	struct clone_args args = {.flags = CLONE_VM | CLONE_VFORK};
	int status = -1;
	prepare(2);
	set(0, SYS_getpid, 0, 0, 0, 0, OK_MAX);
	set(1, SYS_execve, (long)"/bin/true", 0, 0, 0, 0);
	long pid = puzzled_spawn(&shared->plan, &args);
	if (pid == -ENOSYS) {
		puts("clone: not verified here, no clone3");
		return;
	}
	waitpid((pid_t)pid, &status, __WALL);
	printf("clone: status %d at %ld, its own pid: %s\n", status, shared->plan.at,
	       shared->ops[0].result == pid ? "yes" : "no");
}

int main(void)
{
	int ends[2], status;
	sigset_t blocked;
	shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || pipe(ends) != 0)
		return 1;
	sigfillset(&blocked);
	sigprocmask(SIG_BLOCK, &blocked, 0);
	signal(SIGPIPE, SIG_IGN);

	prepare(5);
	strcpy(shared->text, "walked");
	set(0, SYS_dup, ends[1], 0, 0, 0, OK_MAX);
	set(1, SYS_write, -1, (long)shared->text, 6, 0, OK_MAX);
	set(2, SYS_close, -1, 0, 0, 0, OK_MAX);
	set(3, SYS_close, 999, 0, 0, -EBADF, -EBADF);
	set(4, SYS_close, 999, 0, 0, 0, OK_MAX);
	shared->stores[0] = (struct store){0, (unsigned *)&shared->ops[1].args[0]};
	shared->stores[1] = (struct store){0, (unsigned *)&shared->ops[2].args[0]};
	shared->stores[2] = (struct store){1, &shared->words[1]};
	shared->ops[1].args[0] = shared->ops[2].args[0] = 0;
	status = walk();
	char got[16] = {0};
	long length = read(ends[0], got, sizeof got - 1);
	printf("walk: %ld %s, stored %u, exit %d\n", length, got, shared->words[1], WEXITSTATUS(status));
	printf("failure: at %ld returned %ld result %ld\n", shared->plan.at, shared->plan.returned, shared->ops[4].result);

	prepare(2);
	set(0, SYS_close, 999, 0, 0, -EPERM, -EPERM);
	set(1, SYS_kill, 1, 9, 0, 0, OK_MAX);
	walk();
	printf("door: at %ld result %ld\n", shared->plan.at, shared->ops[0].result);

	prepare(1);
	set(0, SYS_execve, (long)"/bin/true", 0, 0, 0, 0);
	status = walk();
	printf("exec: exit %d returned %ld\n", WEXITSTATUS(status), shared->plan.returned);

	prepare(1);
	puzzled_open(&shared->plan, REFUSED);
	set(0, SYS_execve, (long)"/bin/true", 0, 0, 0, 0);
	status = walk();
	printf("refused: exit %d at %ld returned %ld\n", WEXITSTATUS(status), shared->plan.at, shared->plan.returned);

	/* Nobody comes: as when the daemon is killed while it plans. */
	prepare(1);
	puzzled_open(&shared->plan, CLOSED);
	set(0, SYS_execve, (long)"/bin/true", 0, 0, 0, 0);
	status = walk();
	printf("abandoned: exit %d at %ld returned %ld\n", WEXITSTATUS(status), shared->plan.at, shared->plan.returned);

	/* The mask is empty and SIGPIPE is no longer ignored: the child's own signal ends it. */
	prepare(2);
	set(0, SYS_write, ends[1], (long)"x", 1, 0, OK_MAX);
	set(1, SYS_write, ends[1], (long)"x", 1, 0, OK_MAX);
	close(ends[0]);
	status = walk();
	printf("signals: ended by %d at %ld\n", WTERMSIG(status), shared->plan.at);
	clones();
	return 0;
}
