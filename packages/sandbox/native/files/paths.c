#include "paths.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../process/process.h"

static void add_parts(struct bytes *to, const char *path) {
  while (*path != 0) {
    size_t length = strcspn(path, "/");
    if (length == 2 && memcmp(path, "..", 2) == 0) {
      while (to->length > 0 && to->data[to->length - 1] != '/') to->data[--to->length] = 0;
      if (to->length > 0) to->data[--to->length] = 0;
    } else if (length > 0 && !(length == 1 && path[0] == '.')) {
      bytes_add_text(to, "/");
      bytes_add(to, path, length);
    }
    path += length + (path[length] == '/');
  }
}

void resolve_path(const char *path, struct bytes *to) {
  if (path[0] != '/') add_parts(to, setting.home);
  add_parts(to, path);
  if (to->length == 0) bytes_add_text(to, "/");
}

bool real_path_of(int fd, struct bytes *to) {
  char link[40], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path);
  if (length <= 0 || (size_t)length == sizeof path) return false;
  bytes_add(to, path, (size_t)length);
  return true;
}

static bool is_in(const char *path, const char *folder) {
  size_t length = strlen(folder);
  return strncmp(path, folder, length) == 0 && (path[length] == 0 || path[length] == '/');
}

bool is_outside(const char *path, const char *real) {
  static const char *kernel_folders[] = {"/proc", "/sys", "/dev"};
  if (strcmp(path, real) == 0) return false;
  if (is_in(path, setting.home) && !is_in(real, setting.home)) return true;
  for (size_t index = 0; index < 3; index += 1)
    if (is_in(real, kernel_folders[index])) return true;
  return false;
}

/** The Python of an image, to which virtual environments link. A check writes nothing there. */
static bool is_image_python(const char *target) {
  static const char *starts[] = {"/usr/bin/python", "/usr/local/bin/python"};
  for (size_t index = 0; index < 2; index += 1) {
    size_t length = strlen(starts[index]);
    if (strncmp(target, starts[index], length) != 0) continue;
    return strspn(target + length, "0123456789.") == strlen(target + length);
  }
  return false;
}

static size_t depth_of(const char *path) {
  size_t depth = 0;
  for (; *path != 0; path += 1) depth += *path == '/';
  return depth;
}

/**
 * Its target may contain `..` only at the beginning, and at most once for each folder above the link. Those are real folders, and every
 * name after them is inside or another such link. A `..` after a name could leave through another link.
 */
static bool stays_inside(const char *path, const char *target) {
  if (target[0] == 0 || target[0] == '/') return false;
  size_t ups = 0;
  bool has_name = false;
  while (*target != 0) {
    size_t length = strcspn(target, "/");
    bool is_up = length == 2 && memcmp(target, "..", 2) == 0;
    if (is_up && has_name) return false;
    if (is_up) ups += 1;
    else if (length > 0 && !(length == 1 && target[0] == '.')) has_name = true;
    target += length + (target[length] == '/');
  }
  return ups <= depth_of(path);
}

bool inner_target(const char *path, const char *target, const char *folder, struct bytes *to) {
  if (!is_image_python(target) && is_in(target, folder)) {
    for (size_t depth = depth_of(path); depth > 0; depth -= 1) bytes_add_text(to, "../");
    bytes_add_text(to, ".");
    bytes_add_text(to, target + strlen(folder));
  } else {
    bytes_add_text(to, target);
  }
  return is_image_python(target) || stays_inside(path, bytes_text(to));
}
