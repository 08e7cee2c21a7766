// pure
// Generated from tools/uapi/names.txt (inputs 1cdb1511d1830a9e9a3e7d1d7b628e76); do not edit.

export * from './open.ts'
export * from './mount.ts'
export * from './process.ts'
export * from './security.ts'
export * from './quota.ts'
export * from './net.ts'
export * from './tty.ts'
export * from './events.ts'
export * from './syscalls.ts'
