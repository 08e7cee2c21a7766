// pure
// Generated from tools/uapi/names.txt (inputs 4765e7c1c29f02a73f94143c1ef8d1f0); do not edit.

export const LANDLOCK_CREATE_RULESET_VERSION = 1
export const LANDLOCK_CREATE_RULESET_ERRATA = 2
export const LANDLOCK_RULE_PATH_BENEATH = 1
export const LANDLOCK_RULE_NET_PORT = 2
export const LANDLOCK_ACCESS_FS_EXECUTE = 1
export const LANDLOCK_ACCESS_FS_WRITE_FILE = 2
export const LANDLOCK_ACCESS_FS_READ_FILE = 4
export const LANDLOCK_ACCESS_FS_READ_DIR = 8
export const LANDLOCK_ACCESS_FS_REMOVE_DIR = 16
export const LANDLOCK_ACCESS_FS_REMOVE_FILE = 32
export const LANDLOCK_ACCESS_FS_MAKE_CHAR = 64
export const LANDLOCK_ACCESS_FS_MAKE_DIR = 128
export const LANDLOCK_ACCESS_FS_MAKE_REG = 0x100
export const LANDLOCK_ACCESS_FS_MAKE_SOCK = 0x200
export const LANDLOCK_ACCESS_FS_MAKE_FIFO = 0x400
export const LANDLOCK_ACCESS_FS_MAKE_BLOCK = 0x800
export const LANDLOCK_ACCESS_FS_MAKE_SYM = 0x1000
export const LANDLOCK_ACCESS_FS_REFER = 0x2000
export const LANDLOCK_ACCESS_FS_TRUNCATE = 0x4000
export const LANDLOCK_ACCESS_FS_IOCTL_DEV = 0x8000
export const LANDLOCK_ACCESS_FS_RESOLVE_UNIX = 0x10000
export const LANDLOCK_ACCESS_NET_BIND_TCP = 1
export const LANDLOCK_ACCESS_NET_CONNECT_TCP = 2
export const LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET = 1
export const LANDLOCK_SCOPE_SIGNAL = 2
export const LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF = 1
export const LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON = 2
export const LANDLOCK_RESTRICT_SELF_LOG_SUBDOMAINS_OFF = 4
export const LANDLOCK_RESTRICT_SELF_TSYNC = 8
export const SECCOMP_MODE_STRICT = 1
export const SECCOMP_MODE_FILTER = 2
export const SECCOMP_SET_MODE_STRICT = 0
export const SECCOMP_SET_MODE_FILTER = 1
export const SECCOMP_GET_ACTION_AVAIL = 2
export const SECCOMP_GET_NOTIF_SIZES = 3
export const SECCOMP_FILTER_FLAG_TSYNC = 1
export const SECCOMP_FILTER_FLAG_LOG = 2
export const SECCOMP_FILTER_FLAG_SPEC_ALLOW = 4
export const SECCOMP_FILTER_FLAG_NEW_LISTENER = 8
export const SECCOMP_FILTER_FLAG_TSYNC_ESRCH = 16
export const SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV = 32
export const SECCOMP_RET_KILL_PROCESS = 0x80000000
export const SECCOMP_RET_KILL_THREAD = 0
export const SECCOMP_RET_TRAP = 0x30000
export const SECCOMP_RET_ERRNO = 0x50000
export const SECCOMP_RET_USER_NOTIF = 0x7fc00000
export const SECCOMP_RET_TRACE = 0x7ff00000
export const SECCOMP_RET_LOG = 0x7ffc0000
export const SECCOMP_RET_ALLOW = 0x7fff0000
export const SECCOMP_USER_NOTIF_FLAG_CONTINUE = 1
export const SECCOMP_ADDFD_FLAG_SETFD = 1
export const SECCOMP_ADDFD_FLAG_SEND = 2
export const SECCOMP_IOCTL_NOTIF_RECV = 0xc0502100
export const SECCOMP_IOCTL_NOTIF_SEND = 0xc0182101
export const SECCOMP_IOCTL_NOTIF_ID_VALID = 0x40082102
export const SECCOMP_IOCTL_NOTIF_ADDFD = 0x40182103
export const SECCOMP_IOCTL_NOTIF_SET_FLAGS = 0x40082104
export const SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP = 1
export const AUDIT_ARCH_X86_64 = 0xc000003e
export const AUDIT_ARCH_AARCH64 = 0xc00000b7
export const AUDIT_ARCH_I386 = 0x40000003
export const AUDIT_ARCH_ARM = 0x40000028
export const AUDIT_GET = 0x3e8
export const AUDIT_SECCOMP = 0x52e
export const AUDIT_AVC = 0x578
export const AUDIT_LANDLOCK_ACCESS = 0x58f
export const AUDIT_LANDLOCK_DOMAIN = 0x590
export const AUDIT_NLGRP_READLOG = 1
export const BPF_LD = 0
export const BPF_W = 0
export const BPF_ABS = 32
export const BPF_JMP = 5
export const BPF_JEQ = 16
export const BPF_JGE = 48
export const BPF_JSET = 64
export const BPF_K = 0
export const BPF_RET = 6
export const BPF_ALU = 4
export const BPF_AND = 80
export const _LINUX_CAPABILITY_VERSION_3 = 0x20080522
export const KEYCTL_JOIN_SESSION_KEYRING = 1
export const CAP_CHOWN = 0
export const CAP_DAC_OVERRIDE = 1
export const CAP_DAC_READ_SEARCH = 2
export const CAP_FOWNER = 3
export const CAP_FSETID = 4
export const CAP_KILL = 5
export const CAP_SETGID = 6
export const CAP_SETUID = 7
export const CAP_SETPCAP = 8
export const CAP_LINUX_IMMUTABLE = 9
export const CAP_NET_BIND_SERVICE = 10
export const CAP_NET_BROADCAST = 11
export const CAP_NET_ADMIN = 12
export const CAP_NET_RAW = 13
export const CAP_IPC_LOCK = 14
export const CAP_IPC_OWNER = 15
export const CAP_SYS_MODULE = 16
export const CAP_SYS_RAWIO = 17
export const CAP_SYS_CHROOT = 18
export const CAP_SYS_PTRACE = 19
export const CAP_SYS_PACCT = 20
export const CAP_SYS_ADMIN = 21
export const CAP_SYS_BOOT = 22
export const CAP_SYS_NICE = 23
export const CAP_SYS_RESOURCE = 24
export const CAP_SYS_TIME = 25
export const CAP_SYS_TTY_CONFIG = 26
export const CAP_MKNOD = 27
export const CAP_LEASE = 28
export const CAP_AUDIT_WRITE = 29
export const CAP_AUDIT_CONTROL = 30
export const CAP_SETFCAP = 31
export const CAP_MAC_OVERRIDE = 32
export const CAP_MAC_ADMIN = 33
export const CAP_SYSLOG = 34
export const CAP_WAKE_ALARM = 35
export const CAP_BLOCK_SUSPEND = 36
export const CAP_AUDIT_READ = 37
export const CAP_PERFMON = 38
export const CAP_BPF = 39
export const CAP_CHECKPOINT_RESTORE = 40
export const CAP_LAST_CAP = 40

/** Size and offsets of struct audit_status. */
export const audit_status = { size: 44, enabled: 4 }
/** Size and offsets of struct landlock_ruleset_attr. */
export const landlock_ruleset_attr = { size: 24, handled_access_fs: 0, handled_access_net: 8, scoped: 16 }
/** Size and offsets of struct landlock_path_beneath_attr. */
export const landlock_path_beneath_attr = { size: 12, allowed_access: 0, parent_fd: 8 }
/** Size and offsets of struct landlock_net_port_attr. */
export const landlock_net_port_attr = { size: 16, allowed_access: 0, port: 8 }
/** Size and offsets of struct seccomp_data. */
export const seccomp_data = { size: 64, nr: 0, arch: 4, instruction_pointer: 8, args: 16 }
/** Size and offsets of struct seccomp_notif. */
export const seccomp_notif = { size: 80, id: 0, pid: 8, flags: 12, data: 16 }
/** Size and offsets of struct seccomp_notif_resp. */
export const seccomp_notif_resp = { size: 24, id: 0, val: 8, error: 16, flags: 20 }
/** Size and offsets of struct seccomp_notif_addfd. */
export const seccomp_notif_addfd = { size: 24, id: 0, flags: 8, srcfd: 12, newfd: 16, newfd_flags: 20 }
/** Size and offsets of struct seccomp_notif_sizes. */
export const seccomp_notif_sizes = { size: 6, seccomp_notif: 0, seccomp_notif_resp: 2, seccomp_data: 4 }
/** Size and offsets of struct sock_filter. */
export const sock_filter = { size: 8, code: 0, jt: 2, jf: 3, k: 4 }
/** Size and offsets of struct sock_fprog. */
export const sock_fprog = { size: 16, len: 0, filter: 8 }
/** Size and offsets of struct user_cap_header. */
export const user_cap_header = { size: 8, version: 0, pid: 4 }
/** Size and offsets of struct user_cap_data. */
export const user_cap_data = { size: 12, effective: 0, permitted: 4, inheritable: 8 }
