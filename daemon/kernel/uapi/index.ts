// pure
// Generated from tools/uapi/names.txt (inputs d4c324210f84cfb2bb5687651d4e07fa); do not edit.

export * from './open.ts'
export * from './mount.ts'
export * from './process.ts'
export * from './security.ts'
export * from './quota.ts'
export * from './net.ts'
export * from './tty.ts'
export * from './events.ts'
export * from './syscalls.ts'
