/* S11: makes the system calls whose numbers are given, with arguments that are nowhere valid. */
#include "report.h"

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) ATTEMPT(argv[i], syscall(atol(argv[i]), -1L, -1L, -1L, -1L, -1L, -1L));
  return 0;
}
