import { constants } from 'node:os'
import { expect, it } from 'vitest'
import { KernelError } from '../kernel/ffi.ts'
import { asCommitError } from './commit-finish.ts'

const { EINVAL, ENOENT, ENOSPC, EIO } = constants.errno

it.each([
  ['what was a link and is none any more', 'readlinkat', EINVAL, 'conflict'],
  ['another call that the kernel does not understand', 'openat', EINVAL, 'kernel-refused'],
  ['what is gone', 'openat', ENOENT, 'conflict'],
  ['a full disk', 'write', ENOSPC, 'no-space'],
  ['a broken disk', 'write', EIO, 'kernel-refused'],
])('%s ends a commit with its own code', (_, call, errno, code) => {
  expect(asCommitError(new KernelError(call, errno))).toMatchObject({
    code,
    hint: expect.stringContaining(''),
  })
})
