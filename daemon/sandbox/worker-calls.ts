// pure
import type { FilterRule, FilterSource } from '../kernel/seccomp-filter.ts'

/**
 * What a worker may ask of the kernel once it has loaded its code: memory, time, waiting, and the one channel that it
 * was born with. Nothing here names a file, a process or a place in the network. Each line says who needs it.
 */
const CALLS: readonly { readonly calls: string; readonly why: string }[] = [
  { calls: 'read write readv writev close', why: 'the channel, and what wakes the event loop' },
  {
    calls: 'mmap munmap mremap mprotect madvise brk pkey_mprotect',
    why: 'the heaps, and code that V8 makes',
  },
  { calls: 'pkey_alloc pkey_free membarrier', why: 'V8 protects and publishes code' },
  { calls: 'futex sched_yield set_robust_list rseq', why: 'threads of V8 that are there already' },
  { calls: 'epoll_wait epoll_pwait epoll_pwait2 epoll_ctl', why: 'the event loop during a promise' },
  { calls: 'clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday', why: 'time' },
  {
    calls: 'rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall',
    why: 'signals of V8 itself',
  },
  { calls: 'getpid gettid getrusage sched_getaffinity sysinfo getrandom', why: 'asked by V8 and libc' },
  { calls: 'exit exit_group', why: 'the end' },
]

/** `prctl` names memory areas for the kernel's own lists, and does nothing else. */
const PR_SET_VMA = 0x53564d41
/** At its end Node asks about its streams and syncs them: they are told to be none, as `/dev/null` would say it. */
const STREAMS = { fstat: 9, newfstatat: 9, fcntl: 9, fsync: 22 } as const

const EPERM = 1

/** Everything else is EPERM, signals to itself included: an `abort` ends in an illegal instruction. */
export function workerSource(table: Readonly<Record<string, number>>): FilterSource {
  const rule = (call: string, when: FilterRule['when'] = []): FilterRule[] => {
    const number = table[call]
    return number === undefined ? [] : [{ number, action: 'allow', when }]
  }
  return {
    name: 'worker',
    fallback: { errno: EPERM },
    rules: [
      ...CALLS.flatMap(({ calls }) => calls.split(' ').flatMap((call) => rule(call))),
      ...rule('prctl', [{ arg: 0, op: 'low', value: PR_SET_VMA }]),
      ...Object.entries(STREAMS).flatMap(([call, errno]) =>
        rule(call).map((each) => ({ ...each, action: { errno } })),
      ),
    ],
  }
}
