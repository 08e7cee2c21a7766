// pure
// Generated from tools/uapi/names.txt (inputs a7a2bc1bfb55bd135157c21577f233ac); do not edit.

export * from './open.ts'
export * from './mount.ts'
export * from './process.ts'
export * from './security.ts'
export * from './quota.ts'
export * from './net.ts'
export * from './tty.ts'
export * from './events.ts'
export * from './syscalls.ts'
