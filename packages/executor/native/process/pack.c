// Packs a folder of the sandbox as a tar archive. It is the executor that reads, not a program of the agent, and nothing that the agent
// left makes it fail: what cannot be packed is left out and listed, and a file that changes meanwhile keeps the size of its header. It
// works in slices, so that other calls do not wait for a large folder.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/errors.h"
#include "../base/json.h"
#include "../base/loop.h"
#include "../base/utf8.h"
#include "calls.h"
#include "paths.h"
#include "process.h"
#include "tar.h"

/** A tar program that unpacks the archive opens paths of up to 4096 bytes, including those of the folder. */
enum { max_path_bytes = 3900, max_notes = 20 };
/** Shorter than the time after which the worker gives the executor up. */
static const double max_pack_ms = 30000;
static const double slice_ms = 20;

/** A folder that is being packed: its names in order, and where its path ends. */
struct level {
  char **names;
  size_t at;
  size_t path_length;
  struct level *above;
};

struct packing {
  struct call call;
  struct timer timer;
  /** As the worker asked for it. */
  struct bytes asked;
  /** The real path of the folder, followed by that of the current entry. */
  struct bytes path;
  size_t folder_length;
  struct level *level;
  char **exclude;
  size_t max_bytes;
  size_t max_entries;
  double since_ms;
  bool any_link;
  bool list_unchanged;
  double end_ms;
  struct bytes archive;
  struct bytes unchanged;
  struct bytes notes;
  size_t entries;
  size_t left_out;
  /** The kind of the error that stops the packing, and its message. */
  const char *failed;
  int error;
  struct bytes message;
};

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

/** A limit stops the packing. */
static void leave_out_error(struct packing *packing) {
  packing->error = errno;
  if (!is_used_up(errno)) return leave_out(packing, strerror(errno));
  packing->failed = "limit";
  bytes_print(&packing->message, "%s: %s", error_name(errno), strerror(errno));
}

static bool has_room(struct packing *packing, size_t more) {
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
  return has_room(packing, 0);
}

static int compare_names(const void *one, const void *other) { return strcmp(*(char *const *)one, *(char *const *)other); }

static bool is_listed(char **list, const char *name) {
  for (; list != NULL && *list != NULL; list += 1)
    if (strcmp(*list, name) == 0) return true;
  return false;
}

/** Also a folder that its owner may not read. */
static DIR *open_folder(const char *path) {
  DIR *folder = opendir(path);
  if (folder != NULL || errno != EACCES || chmod(path, 0700) < 0) return folder;
  return opendir(path);
}

static void enter_folder(struct packing *packing) {
  DIR *folder = open_folder(packing->path.data);
  if (folder == NULL) return leave_out_error(packing);
  struct level *level = make(sizeof *level);
  size_t count = 0, room = 0;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    const char *name = entry->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || is_listed(packing->exclude, name)) continue;
    if (count + 1 >= room) {
      room = room * 2 + 16;
      level->names = realloc(level->names, room * sizeof *level->names);
      if (level->names == NULL) exit(1);
    }
    level->names[count++] = strdup(name);
    level->names[count] = NULL;
  }
  closedir(folder);
  if (count > 0) qsort(level->names, count, sizeof *level->names, compare_names);
  level->path_length = packing->path.length;
  level->above = packing->level;
  packing->level = level;
}

static void leave_folder(struct packing *packing) {
  struct level *level = packing->level;
  packing->level = level->above;
  env_free(level->names);
  free(level);
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
  if (!has_room(packing, size)) return;
  size_t from = packing->archive.length;
  bytes_add_zeros(&packing->archive, size);
  for (size_t at = 0; at < size;) {
    ssize_t length = pread(fd, packing->archive.data + from + at, size - at, (off_t)at);
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) break;
    at += (size_t)length;
  }
  tar_add_padding(&packing->archive, size);
  has_room(packing, 0);
}

static void add_file(struct packing *packing) {
  int fd = open_file(packing->path.data);
  if (fd < 0) return leave_out_error(packing);
  struct stat stat;
  struct bytes real = {0};
  if (fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode)) leave_out(packing, "not a regular file");
  else if (!real_path_of(fd, &real) || strcmp(bytes_text(&real), packing->path.data) != 0)
    leave_out(packing, "it was moved, or a folder above it became a link");
  else if (has_room(packing, (size_t)stat.st_size)) add_content(packing, fd, &stat);
  bytes_free(&real);
  close(fd);
}

static void add_link(struct packing *packing) {
  char target[PATH_MAX];
  ssize_t length = readlink(packing->path.data, target, sizeof target - 1);
  if (length < 0) return leave_out_error(packing);
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

static void add_folder(struct packing *packing, bool is_changed, mode_t mode) {
  if (is_changed) {
    struct bytes name = {0};
    bytes_print(&name, "%s/", name_of(packing));
    add_entry(packing, &(struct tar_entry){.name = name.data, .mode = mode | 0700, .type = '5', .target = ""});
    bytes_free(&name);
  }
  if (packing->failed == NULL) enter_folder(packing);
}

static void pack_entry(struct packing *packing) {
  struct stat stat;
  if (packing->path.length > max_path_bytes) return leave_out(packing, "its path is too long");
  if (!utf8_is_valid(view_of(name_of(packing)))) return leave_out(packing, "its name is not UTF-8");
  if (now_ms() > packing->end_ms) {
    packing->failed = "too-large";
    bytes_print(&packing->message, "%s could not be packed within %d s", bytes_text(&packing->asked), (int)(max_pack_ms / 1000));
    return;
  }
  if (lstat(packing->path.data, &stat) < 0) return leave_out_error(packing);
  double changed_ms = to_ms(stat.st_ctim) > to_ms(stat.st_mtim) ? to_ms(stat.st_ctim) : to_ms(stat.st_mtim);
  bool is_changed = changed_ms >= packing->since_ms;
  if (S_ISDIR(stat.st_mode)) return add_folder(packing, is_changed, stat.st_mode);
  if (!is_changed) {
    const char *name = name_of(packing);
    if (packing->list_unchanged && has_room(packing, strlen(name) + 1)) bytes_add(&packing->unchanged, name, strlen(name) + 1);
  } else if (S_ISLNK(stat.st_mode)) {
    add_link(packing);
  } else if (S_ISREG(stat.st_mode)) {
    add_file(packing);
  } else {
    leave_out(packing, "neither a file, a folder nor a link");
  }
}

static void finish(struct packing *packing) {
  call_end(&packing->call);
  timer_clear(&packing->timer);
  if (packing->failed == NULL) {
    bytes_add_zeros(&packing->archive, 2 * tar_block);
    has_room(packing, 0);
  }
  if (packing->failed != NULL) {
    reply_error(packing->call.id, packing->failed, packing->error, "%s", bytes_text(&packing->message));
  } else {
    struct bytes result = {0};
    bytes_print(&result, "{\"entries\":%zu,\"skipped\":[%s],\"left_out\":%zu,\"list_bytes\":%zu}", packing->entries, bytes_text(&packing->notes),
                packing->left_out, packing->unchanged.length);
    bytes_add(&packing->archive, bytes_text(&packing->unchanged), packing->unchanged.length);
    reply_result(packing->call.id, bytes_view(&result), bytes_view(&packing->archive));
    bytes_free(&result);
  }
  while (packing->level != NULL) leave_folder(packing);
  env_free(packing->exclude);
  bytes_free(&packing->asked);
  bytes_free(&packing->path);
  bytes_free(&packing->archive);
  bytes_free(&packing->unchanged);
  bytes_free(&packing->notes);
  bytes_free(&packing->message);
  free(packing);
}

static void pack_slice(void *owner) {
  struct packing *packing = owner;
  double end_ms = now_ms() + slice_ms;
  while (packing->level != NULL && packing->failed == NULL && now_ms() < end_ms) {
    struct level *level = packing->level;
    packing->path.length = level->path_length;
    packing->path.data[level->path_length] = 0;
    const char *name = level->names == NULL ? NULL : level->names[level->at];
    level->at += 1;
    if (name == NULL) {
      leave_folder(packing);
    } else {
      bytes_print(&packing->path, "/%s", name);
      pack_entry(packing);
    }
  }
  if (packing->level != NULL && packing->failed == NULL) timer_set(&packing->timer, 0, pack_slice, packing);
  else finish(packing);
}

/** A caller that cancels no longer wants the folder. */
static void on_cancel(struct call *call, bool expired) {
  (void)expired;
  struct packing *packing = (struct packing *)call;
  packing->failed = "failed";
  bytes_add_text(&packing->message, "it was cancelled");
  finish(packing);
}

/** False, after a reply, if it is not a folder or must not be reached. */
static bool find_folder(const struct request *request, struct packing *packing) {
  struct bytes path = {0};
  char real[PATH_MAX];
  struct stat stat;
  const char *failed = NULL;
  if (!param_text(request, "path", &packing->asked)) failed = "a path is not a text, or holds a null character";
  else {
    resolve_path(packing->asked.data, &path);
    if (lstat(path.data, &stat) < 0) failed = strerror(errno);
    else if (!S_ISDIR(stat.st_mode)) failed = "it is not a folder";
    else if (realpath(path.data, real) == NULL) failed = strerror(errno);
    else if (is_outside(path.data, real)) failed = "it is in a link to a place outside";
    else bytes_add_text(&packing->path, real);
  }
  if (failed != NULL) reply_error(request->id, "not-found", 0, "%.4000s: %s", bytes_text(&path), failed);
  bytes_free(&path);
  return failed == NULL;
}

static char **read_names(struct view list) {
  struct json_walk walk = {.value = list};
  size_t count = 0;
  while (list.data != NULL && json_next(&walk)) count += 1;
  char **names = make((count + 1) * sizeof *names);
  walk = (struct json_walk){.value = list};
  for (size_t index = 0; index < count && json_next(&walk); index += 1) {
    struct bytes name = {0};
    bytes_add_text(&name, "");
    json_string(walk.item, &name);
    names[index] = name.data;
  }
  return names;
}

void read_folder(const struct request *request) {
  if (json_is_true(json_get(request->params, "stop_programs"))) kill_everything();
  struct packing *packing = make(sizeof *packing);
  if (!find_folder(request, packing)) {
    bytes_free(&packing->asked);
    return free(packing);
  }
  packing->folder_length = packing->path.length;
  packing->exclude = read_names(json_get(request->params, "exclude"));
  packing->max_bytes = (size_t)param_number(request, "max_bytes", 0);
  packing->max_entries = (size_t)param_number(request, "max_entries", 0);
  packing->since_ms = param_number(request, "since_ms", 0);
  packing->any_link = json_is_true(json_get(request->params, "any_link"));
  packing->list_unchanged = json_is_true(json_get(request->params, "list_unchanged"));
  packing->end_ms = now_ms() + max_pack_ms;
  call_begin(&packing->call, request->id, on_cancel);
  enter_folder(packing);
  pack_slice(packing);
}
