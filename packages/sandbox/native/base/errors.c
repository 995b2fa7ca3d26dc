#include "errors.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>

static const struct {
  int number;
  const char *name;
} names[] = {
    {EAGAIN, "EAGAIN"},   {EMFILE, "EMFILE"},   {ENFILE, "ENFILE"}, {ENOMEM, "ENOMEM"}, {ENOSPC, "ENOSPC"},
    {EDQUOT, "EDQUOT"},   {EFBIG, "EFBIG"},     {ENOENT, "ENOENT"}, {EACCES, "EACCES"}, {EPERM, "EPERM"},
    {EISDIR, "EISDIR"},   {ENOTDIR, "ENOTDIR"}, {EROFS, "EROFS"},   {ELOOP, "ELOOP"},   {ENAMETOOLONG, "ENAMETOOLONG"},
    {EEXIST, "EEXIST"},   {ENXIO, "ENXIO"},     {EIO, "EIO"},       {E2BIG, "E2BIG"},   {ENOEXEC, "ENOEXEC"},
    {ETXTBSY, "ETXTBSY"}, {EINVAL, "EINVAL"},   {EBUSY, "EBUSY"},   {ENODEV, "ENODEV"}, {ENOTEMPTY, "ENOTEMPTY"},
    {EADDRINUSE, "EADDRINUSE"},
};

enum { used_up_names = 7 };

const char *error_name(int number) {
  static char other[24];
  for (size_t index = 0; index < sizeof names / sizeof *names; index += 1)
    if (names[index].number == number) return names[index].name;
  snprintf(other, sizeof other, "error %d", number);
  return other;
}

bool is_used_up(int number) {
  for (size_t index = 0; index < used_up_names; index += 1)
    if (names[index].number == number) return true;
  return false;
}

const char *kind_of(int number, const char *otherwise) { return is_used_up(number) ? "limit" : otherwise; }

int dup_above(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 3); }
