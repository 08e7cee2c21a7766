/*
 * What an agent would try, one act at a time: a static program without libc, for `puzzlectl prove` and the layer test.
 *
 *	attack ACT ARGUMENT [ACT ARGUMENT...]
 *
 * Each act is one attempt in a process of its own, so that what it changes or what kills it does not touch the next. It
 * prints one line, "ACT RESULT": OK, the number of the errno, or the number of the signal with SIG in front. Nothing that
 * succeeds is used any further, and a device node that could be made is removed again.
 */
#include "syscall.h"

enum { AT_FDCWD = -100, O_WRONLY = 1, O_APPEND = 02000, O_CLOEXEC = 02000000 };
enum { AF_UNIX = 1, AF_INET = 2, AF_PACKET = 17, SOCK_STREAM = 1, SOCK_RAW = 3, SIGCHLD = 17, SIGURG = 23 };
enum { CLONE_NEWNS = 0x20000, CLONE_NEWUSER = 0x10000000, PTRACE_DETACH = 17, PTRACE_SEIZE = 0x4206 };
enum { S_IFCHR = 020000, NULL_DEVICE = 1 << 8 | 3, EFAULT = 14, EINVAL = 22, ENAMETOOLONG = 36 };

#if defined(__x86_64__)
enum {
	NR_socket = 41, NR_connect = 42, NR_ptrace = 101, NR_mount = 165, NR_mknodat = 259,
	NR_unlinkat = 263, NR_unshare = 272, NR_process_vm_readv = 310,
};
#else
enum {
	NR_mknodat = 33, NR_unlinkat = 35, NR_mount = 40, NR_unshare = 97, NR_ptrace = 117,
	NR_socket = 198, NR_connect = 203, NR_process_vm_readv = 270,
};
#endif

static long length_of(const char *text)
{
	long length = 0;
	while (text[length])
		length++;
	return length;
}

static int same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static long number(const char *text)
{
	long value = 0;
	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (*text - '0');
	return value;
}

static void end(int status)
{
	call(NR_exit_group, status, 0, 0, 0, 0, 0);
	__builtin_trap();
}

/* One write, so that lines of different processes do not mix. */
static void say(const char *act, const char *what, long value)
{
	char line[128], digits[24];
	long size = 0, count = 0;
	for (; *act && size < 60; act++)
		line[size++] = *act;
	line[size++] = ' ';
	for (; *what; what++)
		line[size++] = *what;
	for (; value > 0; value /= 10)
		digits[count++] = (char)('0' + value % 10);
	while (count > 0)
		line[size++] = digits[--count];
	line[size++] = '\n';
	call(NR_write, 1, (long)line, size, 0, 0, 0);
}

static long connect_unix(const char *name, int abstract)
{
	struct {
		unsigned short family;
		char path[108];
	} address = {.family = AF_UNIX};
	long length = length_of(name);
	if (length + 1 > (long)sizeof address.path)
		return -ENAMETOOLONG;
	for (long at = 0; at < length; at++)
		address.path[at + abstract] = name[at];
	return call(NR_connect, call(NR_socket, AF_UNIX, SOCK_STREAM, 0, 0, 0, 0), (long)&address, 2 + length + 1, 0, 0, 0);
}

static long connect_tcp(const char *port)
{
	unsigned char address[16] = {AF_INET, 0, (unsigned char)(number(port) >> 8), (unsigned char)number(port), 127, 0, 0, 1};
	long fd = call(NR_socket, AF_INET, SOCK_STREAM, 0, 0, 0, 0);
	return fd < 0 ? fd : call(NR_connect, fd, (long)address, sizeof address, 0, 0, 0);
}

static long read_memory(long pid)
{
	char byte;
	struct {
		void *base;
		unsigned long size;
	} here = {&byte, 1}, there = {(void *)0x400000, 1};
	long result = call(NR_ptrace, PTRACE_SEIZE, pid, 0, 0, 0, 0);
	if (result == 0)
		return call(NR_ptrace, PTRACE_DETACH, pid, 0, 0, 0, 0), 0;
	result = call(NR_process_vm_readv, pid, (long)&here, 1, (long)&there, 1, 0);
	/* A bad address is what only somebody hears who may read. */
	return result == -EFAULT ? 0 : result;
}

static long execute(const char *file)
{
	const char *argv[] = {file, "executed", 0};
	return call(NR_execve, (long)file, (long)argv, (long)(argv + 2), 0, 0, 0);
}

static long make_device(const char *name)
{
	long result = call(NR_mknodat, AT_FDCWD, (long)name, S_IFCHR | 0600, NULL_DEVICE, 0, 0);
	if (result == 0)
		call(NR_unlinkat, AT_FDCWD, (long)name, 0, 0, 0, 0);
	return result;
}

static long mount_memory(const char *on)
{
	return call(NR_mount, (long)"none", (long)on, (long)"tmpfs", 0, 0, 0);
}

static long attempt(const char *act, const char *on)
{
	if (same(act, "read"))
		return call(NR_openat, AT_FDCWD, (long)on, O_CLOEXEC, 0, 0, 0);
	if (same(act, "write"))
		return call(NR_openat, AT_FDCWD, (long)on, O_WRONLY | O_APPEND | O_CLOEXEC, 0, 0, 0);
	if (same(act, "execute"))
		return execute(on);
	if (same(act, "socket") || same(act, "bus"))
		return connect_unix(on, 0);
	if (same(act, "abstract"))
		return connect_unix(on, 1);
	if (same(act, "tcp"))
		return connect_tcp(on);
	if (same(act, "packet"))
		return call(NR_socket, AF_PACKET, SOCK_RAW, 0, 0, 0, 0);
	if (same(act, "kill"))
		return call(NR_kill, number(on), SIGURG, 0, 0, 0, 0);
	if (same(act, "trace"))
		return read_memory(number(on));
	if (same(act, "mount"))
		return mount_memory(on);
	if (same(act, "userns")) {
		long result = call(NR_unshare, CLONE_NEWUSER | CLONE_NEWNS, 0, 0, 0, 0, 0);
		return result < 0 ? result : mount_memory(on);
	}
	if (same(act, "device"))
		return make_device(on);
	return -EINVAL;
}

static void in_a_child(const char *act, const char *on)
{
	int status = 0;
	long child = call(NR_clone, SIGCHLD, 0, 0, 0, 0, 0);
	if (child == 0) {
		long result = attempt(act, on);
		say(act, result < 0 ? "" : "OK", result < 0 ? -result : 0);
		end(0);
	}
	if (child < 0)
		say(act, "", -child);
	else
		call(NR_wait4, child, (long)&status, 0, 0, 0, 0);
	if (status & 0x7f)
		say(act, "SIG", status & 0x7f);
}

__attribute__((used, noreturn)) void attack_main(long *stack)
{
	long argc = stack[0];
	char **argv = (char **)(stack + 1);
	if (argc == 2 && same(argv[1], "executed"))
		say("execute", "OK", 0);
	else if (argc < 3 || argc % 2 == 0)
		end(2);
	for (long at = 1; at + 1 < argc; at += 2)
		in_a_child(argv[at], argv[at + 1]);
	end(0);
	__builtin_unreachable();
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call attack_main\n ud2");
#else
__asm__(".globl _start\n_start: mov x29, xzr\n mov x30, xzr\n mov x0, sp\n bl attack_main\n brk #1");
#endif
