// pure
// Generated from tools/uapi/names.txt (inputs ab55f6378076d73434cd1b134c22d5ca); do not edit.

export * from './open.ts'
export * from './mount.ts'
export * from './process.ts'
export * from './security.ts'
export * from './quota.ts'
export * from './net.ts'
export * from './tty.ts'
export * from './events.ts'
export * from './syscalls.ts'
