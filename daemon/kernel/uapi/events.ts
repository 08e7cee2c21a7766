// pure
// Generated from tools/uapi/names.txt (inputs 4765e7c1c29f02a73f94143c1ef8d1f0); do not edit.

export const FAN_CLOEXEC = 1
export const FAN_NONBLOCK = 2
export const FAN_CLASS_NOTIF = 0
export const FAN_CLASS_CONTENT = 4
export const FAN_CLASS_PRE_CONTENT = 8
export const FAN_UNLIMITED_QUEUE = 16
export const FAN_UNLIMITED_MARKS = 32
export const FAN_ENABLE_AUDIT = 64
export const FAN_REPORT_TID = 0x100
export const FAN_REPORT_FID = 0x200
export const FAN_REPORT_DIR_FID = 0x400
export const FAN_REPORT_NAME = 0x800
export const FAN_REPORT_PIDFD = 128
export const FAN_REPORT_TARGET_FID = 0x1000
export const FAN_MARK_ADD = 1
export const FAN_MARK_REMOVE = 2
export const FAN_MARK_FLUSH = 128
export const FAN_MARK_MOUNT = 16
export const FAN_MARK_FILESYSTEM = 0x100
export const FAN_MARK_INODE = 0
export const FAN_MARK_DONT_FOLLOW = 4
export const FAN_MARK_ONLYDIR = 8
export const FAN_MARK_IGNORE = 0x400
export const FAN_MARK_EVICTABLE = 0x200
export const FAN_ACCESS = 1
export const FAN_MODIFY = 2
export const FAN_CLOSE_WRITE = 8
export const FAN_CLOSE_NOWRITE = 16
export const FAN_OPEN = 32
export const FAN_OPEN_EXEC = 0x1000
export const FAN_OPEN_PERM = 0x10000
export const FAN_ACCESS_PERM = 0x20000
export const FAN_OPEN_EXEC_PERM = 0x40000
export const FAN_CREATE = 0x100
export const FAN_DELETE = 0x200
export const FAN_MOVED_FROM = 64
export const FAN_MOVED_TO = 128
export const FAN_ATTRIB = 4
export const FAN_ONDIR = 0x40000000
export const FAN_EVENT_ON_CHILD = 0x8000000
export const FAN_Q_OVERFLOW = 0x4000
export const FAN_RENAME = 0x10000000
export const FAN_ALLOW = 1
export const FAN_DENY = 2
export const FAN_NOFD = -1
export const FAN_EVENT_INFO_TYPE_FID = 1
export const FAN_EVENT_INFO_TYPE_DFID_NAME = 2
export const FAN_EVENT_INFO_TYPE_PIDFD = 4
export const IN_CLOEXEC = 0x80000
export const IN_NONBLOCK = 0x800
export const IN_MODIFY = 2
export const IN_CREATE = 0x100
export const IN_DELETE = 0x200
export const IN_MOVED_TO = 128
export const IN_MOVED_FROM = 64
export const IN_CLOSE_WRITE = 8
export const IN_ATTRIB = 4
export const BPF_MAP_CREATE = 0
export const BPF_PROG_LOAD = 5
export const BPF_OBJ_PIN = 6
export const BPF_OBJ_GET = 7
export const BPF_LINK_CREATE = 28
export const BPF_MAP_UPDATE_ELEM = 2
export const BPF_MAP_LOOKUP_ELEM = 1
export const BPF_MAP_DELETE_ELEM = 3
export const BPF_ANY = 0
export const BPF_NOEXIST = 1
export const BPF_EXIST = 2
export const BPF_MAP_TYPE_HASH = 1
export const BPF_MAP_TYPE_ARRAY = 2
export const BPF_MAP_TYPE_RINGBUF = 27
export const BPF_PROG_TYPE_LSM = 29
export const BPF_LSM_MAC = 27
export const BPF_LSM_CGROUP = 43

/** Size and offsets of struct fanotify_event_metadata. */
export const fanotify_event_metadata = { size: 24, event_len: 0, vers: 4, reserved: 5, metadata_len: 6, mask: 8, fd: 16, pid: 20 }
/** Size and offsets of struct fanotify_event_info_header. */
export const fanotify_event_info_header = { size: 4, info_type: 0, pad: 1, len: 2 }
/** Size and offsets of struct fanotify_response. */
export const fanotify_response = { size: 8, fd: 0, response: 4 }
/** Size and offsets of struct inotify_event. */
export const inotify_event = { size: 16, wd: 0, mask: 4, cookie: 8, len: 12, name: 16 }
