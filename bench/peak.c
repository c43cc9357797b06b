/* Usage: peak FILE COMMAND... Runs the command and writes its peak memory in KiB into FILE.
   The kernel counts the memory of a process that starts another as memory of the other one; this one is small. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
  struct rusage usage;
  int status;
  if (argc < 3) return 2;
  pid_t child = fork();
  if (child == 0) {
    execvp(argv[2], argv + 2);
    _exit(127);
  }
  if (child < 0 || wait4(child, &status, 0, &usage) < 0) return 2;
  FILE *file = fopen(argv[1], "w");
  if (!file) return 2;
  fprintf(file, "%ld\n", usage.ru_maxrss);
  fclose(file);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
