// Packs a folder of the sandbox as a tar archive. It is the executor that reads, not a program of the agent, and nothing that the agent
// left makes it fail: what cannot be packed is left out and listed, and a file that changes meanwhile keeps the size of its header. It
// works in slices, so that other calls do not wait for a large folder.

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/json.h"
#include "../process/calls.h"
#include "../process/process.h"
#include "pack.h"
#include "paths.h"
#include "tar.h"

/** Shorter than the time after which the worker gives the executor up. */
static const double max_pack_ms = 30000;
static const double slice_ms = 20;

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
  if (folder == NULL) return pack_leave_out_error(packing);
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

static void finish(struct packing *packing) {
  call_end(&packing->call);
  timer_clear(&packing->timer);
  if (packing->failed == NULL) {
    bytes_add_zeros(&packing->archive, 2 * tar_block);
    pack_has_room(packing, 0);
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
  if (now_ms() > packing->end_ms) {
    packing->failed = "too-large";
    bytes_print(&packing->message, "%s could not be packed within %d s", bytes_text(&packing->asked), (int)(max_pack_ms / 1000));
  }
  while (packing->level != NULL && packing->failed == NULL && now_ms() < end_ms) {
    struct level *level = packing->level;
    packing->path.length = level->path_length;
    packing->path.data[level->path_length] = 0;
    const char *name = level->names == NULL ? NULL : level->names[level->at];
    level->at += 1;
    if (name == NULL) {
      leave_folder(packing);
    } else {
      bool is_folder;
      bytes_print(&packing->path, "/%s", name);
      pack_entry(packing, &is_folder);
      if (is_folder && packing->failed == NULL) enter_folder(packing);
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
