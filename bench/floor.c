/* The floor: what the machine needs to list a folder, open each child's SKILL.md, read 4 KiB and close it.
   Usage: floor SMALL FOLDER. Lists SMALL without a clock, then FOLDER; prints what peers/clock.py prints. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static int list(const char *root) {
  DIR *folder = opendir(root);
  struct dirent *entry;
  char path[512], data[4096];
  int files = 0;
  if (!folder) return -1;
  while ((entry = readdir(folder))) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/SKILL.md", entry->d_name);
    int file = openat(dirfd(folder), path, O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    if (read(file, data, sizeof data) > 0) files++;
    close(file);
  }
  closedir(folder);
  return files;
}

int main(int argc, char **argv) {
  if (argc != 3 || list(argv[1]) < 0) return 2;
  double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
  int files = list(argv[2]);
  wall = now(CLOCK_MONOTONIC) - wall;
  cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  printf("{\"listed\": %d, \"wall_ms\": %.4f, \"cpu_ms\": %.4f}\n", files, wall, cpu);
  return files < 0;
}
