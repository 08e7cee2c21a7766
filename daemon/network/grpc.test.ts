import { expect, it } from 'vitest'
import { NetworkDenied } from './denial.ts'
import { grpcRefusal, isGrpc, refuseGrpc } from './grpc.ts'

it('is told from what only looks like it', () => {
  for (const type of ['application/grpc', 'application/grpc+proto', 'Application/gRPC; x=y'])
    expect(isGrpc(type)).toBe(true)
  for (const type of [undefined, '', 'application/grpc-web', 'application/json'])
    expect(isGrpc(type)).toBe(false)
  expect(() => refuseGrpc([['content-type', 'application/grpc']], 'a.example.com', 443)).toThrow(/HTTP\/2/)
  expect(() => refuseGrpc([['content-type', 'text/plain']], 'a.example.com', 443)).not.toThrow()
})

it('is refused with a code that is not tried again, and a message that cannot end its header', () => {
  const refusal = grpcRefusal(new NetworkDenied(403, 'no-rule', 'No rüle\r\n100%', { help: 'grant' }))
  expect(refusal).toEqual({
    'content-type': 'application/grpc',
    'grpc-status': '7',
    'grpc-message': 'No r%C3%BCle%0D%0A100%25 [no-rule] (what would help: grant)',
  })
  expect(grpcRefusal(new NetworkDenied(504, 'late', 'x'))['grpc-status']).toBe('14')
})
