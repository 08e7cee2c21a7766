/* Each attempt prints one line, `NAME RESULT`: OK, the name of an errno, or what is said in words. */
#ifndef REPORT_H
#define REPORT_H
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static inline void report(const char *name, long result) {
  const char *text = result >= 0 ? "OK" : strerrorname_np(errno);
  printf("%s %s\n", name, text ? text : "?");
  fflush(stdout);
}

/* Runs an attempt in a process of its own: what it changes, or what kills it, does not touch the next one. */
#define ATTEMPT(name, expression)                                            \
  do {                                                                       \
    fflush(stdout);                                                          \
    pid_t child_ = fork();                                                   \
    if (child_ == 0) {                                                       \
      errno = 0;                                                             \
      report(name, (long)(expression));                                      \
      _exit(0);                                                              \
    }                                                                        \
    int status_ = 0;                                                         \
    waitpid(child_, &status_, 0);                                            \
    if (WIFSIGNALED(status_)) {                                              \
      printf("%s SIG%s\n", name, sigabbrev_np(WTERMSIG(status_)));           \
      fflush(stdout);                                                        \
    }                                                                        \
  } while (0)

#endif
