// pure
// Generated from tools/uapi/names.txt (inputs 4765e7c1c29f02a73f94143c1ef8d1f0); do not edit.

export * from './open.ts'
export * from './mount.ts'
export * from './process.ts'
export * from './security.ts'
export * from './quota.ts'
export * from './net.ts'
export * from './tty.ts'
export * from './events.ts'
export * from './syscalls.ts'
