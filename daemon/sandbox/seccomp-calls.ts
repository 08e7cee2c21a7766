// pure

/** The three shipped programs, from tight to wide. `build` is for compilers, debuggable runtimes and packaging tools. */
export const PROGRAMS = ['strict', 'standard', 'build'] as const
export type SeccompProgram = (typeof PROGRAMS)[number]

/** EPERM: known and forbidden. ENOSYS: as on a kernel without it, so that programs take their older way. */
export type CallVerdict = 'allow' | 'EPERM' | 'ENOSYS'

export interface CallRow {
  /** Names, separated by spaces. A name that an architecture lacks is skipped there. */
  readonly calls: string
  readonly verdict: CallVerdict | Readonly<Record<SeccompProgram, CallVerdict>>
  readonly why: string
}

const strictly = (verdict: CallVerdict): Readonly<Record<SeccompProgram, CallVerdict>> => ({
  strict: verdict,
  standard: 'allow',
  build: 'allow',
})

/**
 * The verdict for every system call of every kernel up to 7.0, on x86-64 and arm64; each name stands here once. What is
 * newer than this table gets ENOSYS. Conditions on arguments are in `seccomp-arguments.ts`.
 */
export const CALLS: readonly CallRow[] = [
  {
    calls: `read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek sendfile copy_file_range
      splice tee readahead fadvise64 close close_range dup dup2 dup3 fcntl flock pipe pipe2`,
    verdict: 'allow',
    why: 'reads and writes of what is open; opening is judged elsewhere',
  },
  {
    calls: 'vmsplice',
    verdict: strictly('EPERM'),
    why: 'gives pages to a pipe; few programs, several kernel bugs',
  },
  {
    calls: `open openat creat stat lstat fstat newfstatat statx statfs fstatfs access faccessat faccessat2
      readlink readlinkat getdents getdents64 getcwd chdir fchdir umask`,
    verdict: 'allow',
    why: 'files by path: limited by the mounts and Landlock',
  },
  {
    calls: 'openat2',
    verdict: strictly('ENOSYS'),
    why: 'its mode is in memory, so a setuid file cannot be refused',
  },
  {
    calls: `mkdir mkdirat rmdir rename renameat renameat2 link linkat unlink unlinkat symlink symlinkat truncate
      ftruncate fallocate chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes utimensat
      futimesat mknod mknodat`,
    verdict: 'allow',
    why: 'changes of files land in the overlay; devices and mode bits are judged by argument',
  },
  {
    calls: `getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr getxattrat listxattrat file_getattr
      setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr setxattrat removexattrat`,
    verdict: 'allow',
    why: 'attributes: trusted.* and security.* need a capability, user.* is reviewed as content',
  },
  { calls: 'file_setattr', verdict: 'EPERM', why: 'sets the project id: a way out of the disk quota' },
  {
    calls: 'sync syncfs fsync fdatasync sync_file_range msync',
    verdict: 'allow',
    why: 'an honest program must be able to make its files durable',
  },
  {
    calls: 'inotify_init inotify_init1 inotify_add_watch inotify_rm_watch',
    verdict: 'allow',
    why: 'watchers of development servers',
  },
  {
    calls: 'fanotify_init fanotify_mark',
    verdict: 'EPERM',
    why: 'watches whole filesystems, not directories',
  },
  {
    calls: 'name_to_handle_at open_by_handle_at',
    verdict: 'EPERM',
    why: 'opens files by inode number, around mounts and paths',
  },
  {
    calls: `mmap munmap mremap mprotect madvise mincore brk mlock mlock2 munlock mlockall munlockall membarrier
      pkey_mprotect pkey_alloc pkey_free mseal map_shadow_stack memfd_create`,
    verdict: 'allow',
    why: 'own memory; writable and executable pages are what JIT compilers live on',
  },
  {
    calls: 'mbind set_mempolicy get_mempolicy set_mempolicy_home_node',
    verdict: strictly('EPERM'),
    why: 'NUMA placement of own memory: numerical libraries',
  },
  { calls: 'migrate_pages move_pages', verdict: 'EPERM', why: 'acts on the memory of other processes' },
  {
    calls: 'process_madvise process_mrelease',
    verdict: 'EPERM',
    why: 'acts on the memory of other processes',
  },
  {
    calls: 'process_vm_readv process_vm_writev',
    verdict: 'EPERM',
    why: 'reads and writes the memory of other processes',
  },
  {
    calls: 'userfaultfd',
    verdict: 'EPERM',
    why: 'stops the kernel in the middle of a copy: widens every race',
  },
  { calls: 'memfd_secret', verdict: 'ENOSYS', why: 'memory that nobody can inspect; no agent needs it' },
  { calls: 'remap_file_pages', verdict: 'ENOSYS', why: 'deprecated and emulated' },
  { calls: 'cachestat', verdict: 'ENOSYS', why: "shows what others read: the page cache is the host's" },
  {
    calls: `fork vfork clone execve execveat exit exit_group wait4 waitid set_tid_address set_robust_list
      get_robust_list rseq futex futex_waitv futex_wake futex_wait futex_requeue arch_prctl prctl`,
    verdict: 'allow',
    why: 'processes and threads; namespace flags of clone are judged by argument',
  },
  {
    calls: 'clone3',
    verdict: 'ENOSYS',
    why: 'its flags are in memory where a filter cannot see them; libraries fall back to clone',
  },
  {
    calls: 'unshare',
    verdict: { strict: 'EPERM', standard: 'allow', build: 'allow' },
    why: 'unsharing files is harmless; namespaces are judged by argument',
  },
  { calls: 'setns', verdict: 'EPERM', why: 'joins a namespace' },
  {
    calls: `getpid getppid gettid getpgid getpgrp setpgid getsid setsid getuid geteuid getgid getegid getgroups
      getresuid getresgid setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capget
      capset`,
    verdict: 'allow',
    why: 'own identity: without capabilities it can only be read and set to what it is',
  },
  {
    calls: `rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend sigaltstack
      rt_sigqueueinfo rt_tgsigqueueinfo kill tkill tgkill pause restart_syscall signalfd signalfd4 pidfd_open
      pidfd_send_signal`,
    verdict: 'allow',
    why: 'signals reach the processes of the PID namespace only',
  },
  { calls: 'pidfd_getfd', verdict: 'EPERM', why: 'takes open files out of other processes' },
  { calls: 'kcmp', verdict: 'EPERM', why: 'compares kernel pointers of other processes' },
  {
    calls: 'ptrace',
    verdict: 'EPERM',
    why: 'changes the system calls of other processes after they were judged',
  },
  {
    calls: 'perf_event_open',
    verdict: 'EPERM',
    why: 'large and often broken kernel interface; measures others',
  },
  {
    calls: `sched_yield sched_getaffinity sched_setaffinity sched_getparam sched_setparam sched_getscheduler
      sched_setscheduler sched_getattr sched_setattr sched_get_priority_max sched_get_priority_min
      sched_rr_get_interval getpriority setpriority ioprio_get ioprio_set getcpu getrlimit setrlimit prlimit64
      getrusage times`,
    verdict: 'allow',
    why: 'scheduling and limits: only downwards without capabilities',
  },
  {
    calls: `nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time alarm getitimer setitimer
      timer_create timer_settime timer_gettime timer_getoverrun timer_delete timerfd_create timerfd_settime
      timerfd_gettime`,
    verdict: 'allow',
    why: 'reading clocks and waiting',
  },
  {
    calls: 'settimeofday clock_settime adjtimex clock_adjtime',
    verdict: 'EPERM',
    why: "sets the host's clock",
  },
  {
    calls: `poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2
      eventfd eventfd2`,
    verdict: 'allow',
    why: 'waiting for descriptors',
  },
  {
    calls: `socket socketpair bind listen accept accept4 connect shutdown getsockname getpeername getsockopt
      setsockopt sendto sendmsg sendmmsg recvfrom recvmsg recvmmsg`,
    verdict: 'allow',
    why: 'sockets inside an own network namespace; families are judged by argument',
  },
  { calls: 'ioctl', verdict: 'allow', why: 'terminals and files; dangerous requests are judged by argument' },
  {
    calls: 'io_setup io_destroy io_getevents io_pgetevents io_submit io_cancel',
    verdict: strictly('ENOSYS'),
    why: 'POSIX-like asynchronous files: databases',
  },
  {
    calls: 'io_uring_setup io_uring_enter io_uring_register',
    verdict: 'EPERM',
    why: 'performs system calls that no filter sees',
  },
  {
    calls: 'shmget shmat shmdt shmctl semget semop semctl semtimedop msgget msgsnd msgrcv msgctl',
    verdict: strictly('ENOSYS'),
    why: 'System V objects of the own IPC namespace: databases, fakeroot',
  },
  {
    calls: 'mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr',
    verdict: strictly('ENOSYS'),
    why: 'message queues of the own IPC namespace',
  },
  {
    calls: 'uname sysinfo getrandom',
    verdict: 'allow',
    why: 'facts about the machine that every runtime reads',
  },
  {
    calls: 'personality',
    verdict: 'allow',
    why: 'asking, and under build no address randomisation; judged by argument',
  },
  {
    calls: 'seccomp',
    verdict: 'allow',
    why: 'a program may only restrict itself further (file, man, browsers do)',
  },
  {
    calls: 'landlock_create_ruleset landlock_add_rule landlock_restrict_self',
    verdict: 'allow',
    why: 'a program may only restrict itself further',
  },
  {
    calls: 'uretprobe uprobe',
    verdict: 'allow',
    why: "the kernel's own trampolines: a process that the host traces would die without",
  },
  { calls: 'mount umount2 pivot_root chroot', verdict: 'EPERM', why: 'changes what paths mean' },
  {
    calls: 'open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick mount_setattr',
    verdict: 'EPERM',
    why: 'changes what paths mean; arguments in memory',
  },
  { calls: 'statmount listmount listns', verdict: 'ENOSYS', why: 'shows paths and namespaces of the host' },
  {
    calls: 'lsm_get_self_attr lsm_set_self_attr lsm_list_modules',
    verdict: 'ENOSYS',
    why: 'labels are the business of the host',
  },
  { calls: 'bpf', verdict: 'EPERM', why: 'runs programs in the kernel' },
  { calls: 'add_key request_key keyctl', verdict: 'EPERM', why: 'keyrings belong to no namespace' },
  { calls: 'init_module finit_module delete_module', verdict: 'EPERM', why: 'changes the kernel' },
  { calls: 'kexec_load kexec_file_load reboot', verdict: 'EPERM', why: 'ends the kernel' },
  {
    calls: 'swapon swapoff acct quotactl quotactl_fd',
    verdict: 'EPERM',
    why: "administers the host's storage",
  },
  { calls: 'sethostname setdomainname vhangup', verdict: 'EPERM', why: 'administration' },
  { calls: 'syslog', verdict: 'EPERM', why: "reads the kernel's log: addresses, events of others" },
  { calls: 'iopl ioperm', verdict: 'EPERM', why: 'ports of the machine' },
  { calls: 'modify_ldt', verdict: 'EPERM', why: '16-bit segments: old kernel code with a record of bugs' },
  { calls: 'lookup_dcookie uselib ustat sysfs _sysctl', verdict: 'ENOSYS', why: 'obsolete' },
  {
    calls: `nfsservctl getpmsg putpmsg afs_syscall tuxcall security vserver create_module get_kernel_syms
      query_module epoll_ctl_old epoll_wait_old set_thread_area get_thread_area`,
    verdict: 'ENOSYS',
    why: 'numbers without code behind them',
  },
  { calls: 'rseq_slice_yield', verdict: 'ENOSYS', why: 'newer than what was reviewed' },
]

/** System calls that the headers of Debian 12 do not know; the numbers are the same on every architecture. */
export const NEWER_CALLS: Readonly<Record<string, number>> = {
  cachestat: 451,
  fchmodat2: 452,
  map_shadow_stack: 453,
  futex_wake: 454,
  futex_wait: 455,
  futex_requeue: 456,
  statmount: 457,
  listmount: 458,
  lsm_get_self_attr: 459,
  lsm_set_self_attr: 460,
  lsm_list_modules: 461,
  mseal: 462,
  setxattrat: 463,
  getxattrat: 464,
  listxattrat: 465,
  removexattrat: 466,
  open_tree_attr: 467,
  file_getattr: 468,
  file_setattr: 469,
  listns: 470,
  rseq_slice_yield: 471,
}

/** The same for x86-64 alone. */
export const NEWER_X64_CALLS: Readonly<Record<string, number>> = { uretprobe: 335, uprobe: 336 }
