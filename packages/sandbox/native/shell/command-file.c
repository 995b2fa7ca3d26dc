#include "command-file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../process/process.h"

static bool records_reads;

const char *command_path(void) {
  static struct bytes path;
  if (path.length == 0) bytes_print(&path, "%s/command", setting.own_folder);
  return path.data;
}

static int write_plain_file(struct view content) {
  int fd = open(command_path(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  int error = 0;
  for (size_t at = 0; at < content.length && error == 0;) {
    ssize_t length = write(fd, content.data + at, content.length - at);
    if (length > 0) at += (size_t)length;
    else if (errno != EINTR) error = errno;
  }
  const struct timespec times[2] = {{.tv_sec = 0}, {.tv_nsec = UTIME_NOW}};
  if (error == 0 && futimens(fd, times) < 0) error = errno;
  close(fd);
  return error;
}

static int remove_entry(const char *path, const struct stat *stat, int kind, struct FTW *place) {
  (void)stat, (void)kind;
  if (place->level > 0) remove(path);
  return 0;
}

int command_write(struct view command) {
  if (write_plain_file(command) == 0) return 0;
  chmod(setting.own_folder, 0700);
  nftw(setting.own_folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
  struct bytes aside = {0}; // for a folder that cannot be removed
  static unsigned count;
  bytes_print(&aside, "%s/aside-%u", setting.own_folder, count++);
  rename(command_path(), aside.data);
  bytes_free(&aside);
  return write_plain_file(command);
}

static bool has_time(void) {
  struct stat found;
  if (stat(command_path(), &found) < 0) return true; // the command has removed the file: it ran
  return found.st_atim.tv_sec != 0 || found.st_atim.tv_nsec != 0;
}

int command_prepare(void) {
  char first;
  int error = command_write(view_of(":"));
  if (error != 0) return error;
  int fd = open(command_path(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0) {
    ssize_t length = read(fd, &first, 1);
    (void)length; // what counts is the time of the access
    close(fd);
  }
  records_reads = has_time();
  return 0;
}

bool command_was_read(void) { return !records_reads || has_time(); }
