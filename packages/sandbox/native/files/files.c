// Reading and writing files of the sandbox. A named pipe cannot block a call.

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/errors.h"
#include "../base/json.h"
#include "../process/calls.h"
#include "paths.h"

static void refuse(long id, const char *kind, const char *what, const char *path) {
  int error = errno;
  reply_error(id, kind_of(error, kind), error, "%s: %s, %s '%.4000s'", error_name(error), strerror(error), what, path);
}

/** Reads one byte more than allowed: the file may be growing, or report no size, as in /proc. False if the kernel refused. */
static bool read_up_to(int fd, size_t most, struct bytes *content) {
  static char chunk[1 << 16];
  while (content->length <= most) {
    size_t wanted = most + 1 - content->length;
    ssize_t length = read(fd, chunk, wanted < sizeof chunk ? wanted : sizeof chunk);
    if (length == 0) return true;
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return false;
    bytes_add(content, chunk, (size_t)length);
  }
  return true;
}

static void reply_content(const struct request *request, const char *path, int fd) {
  struct stat stat;
  struct bytes real = {0}, content = {0}, result = {0};
  size_t most = (size_t)param_number(request, "max_bytes", 0);
  bool any_link = json_is_true(json_get(request->params, "any_link"));
  if (fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode)) {
    reply_error(request->id, "not-found", 0, "%.4000s is not a regular file", path);
  } else if (!any_link && (!real_path_of(fd, &real) || is_outside(path, bytes_text(&real)))) {
    reply_error(request->id, "not-found", 0, "%.4000s is a link, or in one, to %.200s, which is outside", path, bytes_text(&real));
  } else if ((size_t)stat.st_size > most) {
    reply_error(request->id, "too-large", 0, "%.4000s has %lld bytes, more than %zu", path, (long long)stat.st_size, most);
  } else if (!read_up_to(fd, most, &content)) {
    refuse(request->id, "not-found", "read", path);
  } else if (content.length > most) {
    reply_error(request->id, "too-large", 0, "%.4000s has %zu bytes, more than %zu", path, content.length, most);
  } else {
    bytes_print(&result, "{\"size\":%zu}", content.length);
    reply_result(request->id, bytes_view(&result), bytes_view(&content));
  }
  bytes_free(&real);
  bytes_free(&content);
  bytes_free(&result);
}

/** False, after a reply, if the path is no text that can be one. */
static bool read_path(const struct request *request, struct bytes *path) {
  struct bytes given = {0};
  bool is_path = param_text(request, "path", &given);
  if (is_path) resolve_path(bytes_text(&given), path);
  else reply_error(request->id, "not-found", 0, "a path is not a text, or holds a null character");
  bytes_free(&given);
  return is_path;
}

void read_file(const struct request *request) {
  struct bytes path = {0};
  if (!read_path(request, &path)) return;
  int fd = open(path.data, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) {
    refuse(request->id, "not-found", "open", path.data);
  } else {
    reply_content(request, path.data, fd);
    close(fd);
  }
  bytes_free(&path);
}

/** Creates the missing folders above a path. */
static bool make_folders(char *path) {
  for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    struct stat found;
    int error = mkdir(path, 0777) == 0 ? 0 : errno;
    if (error != 0 && stat(path, &found) == 0 && S_ISDIR(found.st_mode)) error = 0;
    *slash = '/';
    errno = error;
    if (error != 0) return false;
  }
  return true;
}

static bool write_all(int fd, struct view content) {
  for (size_t at = 0; at < content.length;) {
    ssize_t length = write(fd, content.data + at, content.length - at);
    if (length < 0 && errno != EINTR) return false;
    if (length > 0) at += (size_t)length;
  }
  return true;
}

void write_file(const struct request *request) {
  struct bytes path = {0};
  if (!read_path(request, &path)) return;
  int fd = -1;
  bool is_written = make_folders(path.data) && (fd = open(path.data, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0666)) >= 0 &&
                    write_all(fd, request->body) && fchmod(fd, (mode_t)param_number(request, "mode", 0644)) == 0;
  if (is_written) reply_result(request->id, view_of("{}"), (struct view){0});
  else refuse(request->id, "failed", "write", path.data);
  if (fd >= 0) close(fd);
  bytes_free(&path);
}

void make_folder(const struct request *request) {
  struct bytes path = {0};
  if (!read_path(request, &path)) return;
  bool is_made = make_folders(path.data) && mkdir(path.data, 0777) == 0 && chmod(path.data, (mode_t)param_number(request, "mode", 0755)) == 0;
  if (is_made) reply_result(request->id, view_of("{}"), (struct view){0});
  else refuse(request->id, "failed", "make", path.data);
  bytes_free(&path);
}

static bool copy_all(int from, int to) {
  static char chunk[1 << 16];
  for (;;) {
    ssize_t length = read(from, chunk, sizeof chunk);
    if (length == 0) return true;
    if (length < 0 && errno == EINTR) continue;
    if (length < 0 || !write_all(to, (struct view){chunk, (size_t)length})) return false;
  }
}

void copy_file(const struct request *request) {
  struct bytes from = {0}, path = {0};
  if (!param_text(request, "from", &from)) return reply_error(request->id, "not-found", 0, "a path is not a text, or holds a null character");
  int source = open(bytes_text(&from), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY), fd = -1;
  if (source < 0) {
    refuse(request->id, "not-found", "open", bytes_text(&from));
  } else if (read_path(request, &path)) {
    bool is_copied = make_folders(path.data) && (fd = open(path.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) >= 0 && copy_all(source, fd) &&
                     fchmod(fd, (mode_t)param_number(request, "mode", 0644)) == 0;
    if (is_copied) reply_result(request->id, view_of("{}"), (struct view){0});
    else refuse(request->id, "failed", "copy", path.data);
  }
  if (source >= 0) close(source);
  if (fd >= 0) close(fd);
  bytes_free(&from);
  bytes_free(&path);
}
