// One entry of a folder that is packed: a file, a link that stays inside, or a folder. What cannot be packed is left out and listed.

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/errors.h"
#include "../base/json.h"
#include "../base/utf8.h"
#include "pack.h"
#include "paths.h"
#include "tar.h"

/** A tar program that unpacks the archive opens paths of up to 4096 bytes, including those of the folder. */
enum { max_path_bytes = 3900, max_notes = 20 };

/** The path of the current entry, relative to the folder. */
static const char *name_of(const struct packing *packing) { return packing->path.data + packing->folder_length + 1; }

static void fail_large(struct packing *packing) {
  packing->failed = "too-large";
  bytes_print(&packing->message, "%s has more than %zu bytes as an archive, or more than %zu files and folders", bytes_text(&packing->asked),
              packing->max_bytes, packing->max_entries);
}

static void leave_out(struct packing *packing, const char *why) {
  packing->left_out += 1;
  if (packing->left_out > max_notes) return;
  struct bytes note = {0};
  bytes_print(&note, "%.200s (%.200s)", packing->path.length > packing->folder_length ? name_of(packing) : "", why);
  if (packing->notes.length > 0) bytes_add_text(&packing->notes, ",");
  json_add_string(&packing->notes, bytes_view(&note));
  bytes_free(&note);
}

void pack_leave_out_error(struct packing *packing) {
  packing->error = errno;
  if (!is_used_up(errno)) return leave_out(packing, strerror(errno));
  packing->failed = "limit";
  bytes_print(&packing->message, "%s: %s", error_name(errno), strerror(errno));
}

bool pack_has_room(struct packing *packing, size_t more) {
  if (packing->archive.length + packing->unchanged.length + more <= packing->max_bytes) return true;
  fail_large(packing);
  return false;
}

static bool add_entry(struct packing *packing, const struct tar_entry *entry) {
  packing->entries += 1;
  if (packing->entries > packing->max_entries) return fail_large(packing), false;
  struct bytes name = {0};
  bytes_print(&name, "./%s", entry->name);
  struct tar_entry named = *entry;
  named.name = name.data;
  tar_add_header(&packing->archive, &named);
  bytes_free(&name);
  return pack_has_room(packing, 0);
}

static int open_file(const char *path) {
  int flags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY;
  int fd = open(path, flags);
  if (fd >= 0 || errno != EACCES || chmod(path, 0600) < 0) return fd;
  return open(path, flags);
}

/** If the file shrinks meanwhile, the rest is zeros. */
static void add_content(struct packing *packing, int fd, const struct stat *stat) {
  size_t size = (size_t)stat->st_size;
  if (!add_entry(packing, &(struct tar_entry){.name = name_of(packing), .mode = stat->st_mode, .type = '0', .size = size, .target = ""})) return;
  if (!pack_has_room(packing, size)) return;
  size_t from = packing->archive.length;
  bytes_add_zeros(&packing->archive, size);
  for (size_t at = 0; at < size;) {
    ssize_t length = pread(fd, packing->archive.data + from + at, size - at, (off_t)at);
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) break;
    at += (size_t)length;
  }
  tar_add_padding(&packing->archive, size);
  pack_has_room(packing, 0);
}

static void add_file(struct packing *packing) {
  int fd = open_file(packing->path.data);
  if (fd < 0) return pack_leave_out_error(packing);
  struct stat stat;
  struct bytes real = {0};
  if (fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode)) leave_out(packing, "not a regular file");
  else if (!real_path_of(fd, &real) || strcmp(bytes_text(&real), packing->path.data) != 0)
    leave_out(packing, "it was moved, or a folder above it became a link");
  else if (pack_has_room(packing, (size_t)stat.st_size)) add_content(packing, fd, &stat);
  bytes_free(&real);
  close(fd);
}

static void add_link(struct packing *packing) {
  char target[PATH_MAX];
  ssize_t length = readlink(packing->path.data, target, sizeof target - 1);
  if (length < 0) return pack_leave_out_error(packing);
  target[length] = 0;
  struct bytes folder = {0}, inner = {0}, why = {0};
  bytes_add(&folder, packing->path.data, packing->folder_length);
  bool is_inside = inner_target(name_of(packing), target, folder.data, &inner);
  bytes_print(&why, "a link to %s, outside", target);
  if (is_inside || packing->any_link)
    add_entry(packing, &(struct tar_entry){.name = name_of(packing), .mode = 0777, .type = '2', .target = packing->any_link ? target : inner.data});
  else leave_out(packing, why.data);
  bytes_free(&folder);
  bytes_free(&inner);
  bytes_free(&why);
}

static double to_ms(struct timespec time) { return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6; }

static void add_folder(struct packing *packing, mode_t mode) {
  struct bytes name = {0};
  bytes_print(&name, "%s/", name_of(packing));
  add_entry(packing, &(struct tar_entry){.name = name.data, .mode = mode | 0700, .type = '5', .target = ""});
  bytes_free(&name);
}

void pack_entry(struct packing *packing, bool *is_folder) {
  struct stat stat;
  *is_folder = false;
  if (packing->path.length > max_path_bytes) return leave_out(packing, "its path is too long");
  if (!utf8_is_valid(view_of(name_of(packing)))) return leave_out(packing, "its name is not UTF-8");
  if (lstat(packing->path.data, &stat) < 0) return pack_leave_out_error(packing);
  double changed_ms = to_ms(stat.st_ctim) > to_ms(stat.st_mtim) ? to_ms(stat.st_ctim) : to_ms(stat.st_mtim);
  bool is_changed = changed_ms >= packing->since_ms;
  *is_folder = S_ISDIR(stat.st_mode);
  if (*is_folder) {
    if (is_changed) add_folder(packing, stat.st_mode);
  } else if (!is_changed) {
    const char *name = name_of(packing);
    if (packing->list_unchanged && pack_has_room(packing, strlen(name) + 1)) bytes_add(&packing->unchanged, name, strlen(name) + 1);
  } else if (S_ISLNK(stat.st_mode)) {
    add_link(packing);
  } else if (S_ISREG(stat.st_mode)) {
    add_file(packing);
  } else {
    leave_out(packing, "neither a file, a folder nor a link");
  }
}
