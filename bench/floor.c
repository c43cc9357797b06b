/* The floor: what the machine needs to list a folder, open each child's SKILL.md, read 4 KiB and close it.
   Usage: floor FOLDER RUNS. Prints the smallest wall time in milliseconds and the number of files read. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
  double best = 1e12;
  int files = 0;
  if (argc != 3) return 2;
  for (int run = 0; run < atoi(argv[2]); run++) {
    double start = now();
    DIR *folder = opendir(argv[1]);
    struct dirent *entry;
    char path[512], data[4096];
    if (!folder) return 1;
    files = 0;
    while ((entry = readdir(folder))) {
      if (entry->d_name[0] == '.') continue;
      snprintf(path, sizeof path, "%s/SKILL.md", entry->d_name);
      int file = openat(dirfd(folder), path, O_RDONLY | O_CLOEXEC);
      if (file < 0) continue;
      if (read(file, data, sizeof data) > 0) files++;
      close(file);
    }
    closedir(folder);
    if (now() - start < best) best = now() - start;
  }
  printf("%.4f %d\n", best, files);
  return 0;
}
