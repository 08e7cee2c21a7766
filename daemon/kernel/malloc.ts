import { ffi } from './ffi.ts'

const M_ARENA_MAX = -8

/**
 * Lets all threads share this many heaps of malloc(3). Without it the GNU library gives each thread one of its own, which
 * keeps what that thread has once needed: of a dozen threads that mostly wait, many megabytes. Other C libraries have no
 * such heaps; there it changes nothing.
 */
export function limitArenas(count: number): void {
  // SAFETY: integers only; mallopt may be called at any time, and holds for heaps that are not there yet.
  ffi().load('libc.so.6').func('int mallopt(int option, int value)')(M_ARENA_MAX, count)
}
