/* System calls without libc for the two architectures, and the few constants that spawn.c and init.c use. */
#pragma once

enum {
	SIG_SETMASK = 2,
	PROT_NONE = 0,
	PROT_READ = 1,
	PROT_WRITE = 2,
	MAP_PRIVATE = 2,
	MAP_ANONYMOUS = 0x20,
};

/* The kernel's struct sigaction; all zero is the default action. */
struct sigaction_raw {
	unsigned long handler, flags, restorer, mask;
};

#if defined(__x86_64__)
enum {
	NR_read = 0, NR_write = 1, NR_mmap = 9, NR_mprotect = 10, NR_munmap = 11, NR_rt_sigaction = 13,
	NR_rt_sigprocmask = 14, NR_ioctl = 16, NR_clone = 56, NR_execve = 59, NR_wait4 = 61, NR_kill = 62,
	NR_setsid = 112, NR_rt_sigtimedwait = 128, NR_exit_group = 231, NR_pipe2 = 293, NR_clone3 = 435, NR_close_range = 436,
	NR_close = 3, NR_getpid = 39, NR_setpgid = 109, NR_prctl = 157, NR_futex = 202, NR_clock_gettime = 228, NR_fcntl = 72, NR_openat = 257, NR_ppoll = 271,
	NR_setgroups = 116, NR_setresuid = 117, NR_setresgid = 119, NR_getsockopt = 55, NR_statx = 332, NR_dup3 = 292, NR_pidfd_getfd = 438,
};

static inline long call(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

/* clone3; the child, on its new stack, enters puzzled_child(plan) and never comes back. */
static inline long clone_and_call(void *args, unsigned long size, void *plan)
{
	register void *kept __asm__("r12") = plan;
	long result;
	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%r12, %%rdi\n\t"
			 "call puzzled_child\n\t"
			 "ud2\n"
			 "1:"
			 : "=a"(result)
			 : "a"(NR_clone3), "D"(args), "S"(size), "r"(kept)
			 : "rcx", "r11", "memory");
	return result;
}

#elif defined(__aarch64__)
enum {
	NR_ioctl = 29, NR_close = 57, NR_pipe2 = 59, NR_read = 63, NR_write = 64, NR_exit_group = 94, NR_kill = 129,
	NR_rt_sigaction = 134, NR_rt_sigprocmask = 135, NR_rt_sigtimedwait = 137, NR_setsid = 157, NR_prctl = 167,
	NR_munmap = 215, NR_clone = 220, NR_execve = 221, NR_mmap = 222, NR_mprotect = 226, NR_wait4 = 260,
	NR_clone3 = 435, NR_close_range = 436, NR_futex = 98, NR_openat = 56, NR_clock_gettime = 113, NR_setpgid = 154,
	NR_getpid = 172, NR_fcntl = 25, NR_ppoll = 73, NR_setgroups = 159,
	NR_setresuid = 147, NR_setresgid = 149, NR_getsockopt = 209, NR_statx = 291, NR_dup3 = 24, NR_pidfd_getfd = 438,
};

static inline long call(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

static inline long clone_and_call(void *args, unsigned long size, void *plan)
{
	register long x8 __asm__("x8") = NR_clone3;
	register long x0 __asm__("x0") = (long)args;
	register long x1 __asm__("x1") = (long)size;
	register void *kept __asm__("x19") = plan;
	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, xzr\n\t"
			 "mov x30, xzr\n\t"
			 "mov x0, x19\n\t"
			 "bl puzzled_child\n\t"
			 "brk #1\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(kept)
			 : "memory", "x30");
	return x0;
}

#else
#error "puzzled runs on x86-64 and aarch64"
#endif
