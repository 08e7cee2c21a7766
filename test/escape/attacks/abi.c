/* S7: the same kernel by its other doors: x32 numbers, and the 32-bit entry. */
#include "report.h"
#include <sys/mman.h>

#ifdef __x86_64__
static long x32_getpid(void) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "0"(0x40000000L + SYS_getpid) : "rcx", "r11", "memory");
  if (result < 0) errno = (int)-result;
  return result < 0 ? -1 : 0;
}

static long int80_getpid(void) {
  long result = 20; /* getpid in the i386 table */
  __asm__ volatile("int $0x80" : "+a"(result) : : "r8", "r9", "r10", "r11", "memory");
  if ((int)result < 0) errno = -(int)result;
  return (int)result < 0 ? -1 : 0;
}
#endif

int main(void) {
#ifdef __x86_64__
  ATTEMPT("x32", x32_getpid());
  ATTEMPT("int80", int80_getpid());
#endif
  ATTEMPT("native", getpid());
  return 0;
}
