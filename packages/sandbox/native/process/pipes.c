#include "pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/errors.h"
#include "../base/json.h"
#include "process.h"

static bool is_text(const struct bytes *bytes) { return strlen(bytes_text(bytes)) == bytes->length; }

/** Null if it is not a list of texts without zeros. */
static char **read_argv(struct view list) {
  struct json_walk walk = {.value = list};
  size_t count = 0;
  while (list.data != NULL && json_next(&walk)) count += 1;
  char **argv = make((count + 1) * sizeof *argv);
  walk = (struct json_walk){.value = list};
  for (size_t index = 0; index < count && json_next(&walk); index += 1) {
    struct bytes text = {0};
    bytes_add_text(&text, "");
    argv[index] = text.data;
    bool is_string = json_string(walk.item, &text);
    argv[index] = text.data;
    if (is_string && is_text(&text)) continue;
    env_free(argv);
    return NULL;
  }
  if (count > 0) return argv;
  free(argv);
  return NULL;
}

/** Null if a variable is not a text without zeros. */
static char **read_env(struct view object) {
  char **env = env_copy(setting.env);
  struct json_walk walk = {.value = object};
  while (env != NULL && object.data != NULL && json_next(&walk)) {
    struct bytes name = {0}, value = {0};
    bool is_valid = json_string(walk.key, &name) && json_string(walk.item, &value) && is_text(&name) && is_text(&value);
    char **more = is_valid ? env_with(env, bytes_view(&name), bytes_view(&value)) : NULL;
    env_free(env);
    env = more;
    bytes_free(&name);
    bytes_free(&value);
  }
  return env;
}

/** Sockets: a process can open a pipe again through /proc, and read or write what is not for it. */
static int open_pipes(int pipes[3][2]) {
  for (int index = 0; index < 3; index += 1)
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipes[index]) < 0) return errno;
  return 0;
}

static void close_side(int pipes[3][2], int side_of_input) {
  for (int index = 0; index < 3; index += 1) {
    int side = index == 0 ? side_of_input : 1 - side_of_input;
    if (pipes[index][side] >= 0) close(pipes[index][side]);
  }
}

int start_piped(const struct request *request, struct piped *piped, struct bytes *problem) {
  char **argv = read_argv(json_get(request->params, "argv"));
  struct bytes cwd = {0};
  bool has_cwd = json_get(request->params, "cwd").data != NULL;
  char **env = read_env(json_get(request->params, "env"));
  if (argv == NULL || env == NULL || (has_cwd && !param_text(request, "cwd", &cwd))) {
    bytes_add_text(problem, "an argument or a variable is not a text, or holds a null character");
    env_free(argv);
    env_free(env);
    bytes_free(&cwd);
    return -1;
  }
  int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
  int error = open_pipes(pipes);
  int files[3] = {pipes[0][0], pipes[1][1], pipes[2][1]};
  struct launch launch = {.argv = argv, .env = env, .cwd = has_cwd ? bytes_text(&cwd) : setting.home, .files = files, .file_count = 3, .has_session = true};
  piped->pid = error == 0 ? launch_program(&launch, &error) : 0;
  close_side(pipes, 0);
  if (error == 0) {
    piped->in = pipes[0][1];
    piped->out = pipes[1][0];
    piped->err = pipes[2][0];
  } else {
    close_side(pipes, 1);
    bytes_print(problem, "spawn %.900s %s", argv[0], error_name(error));
  }
  env_free(argv);
  env_free(env);
  bytes_free(&cwd);
  return error;
}

bool read_chunk(int fd, struct view *chunk) {
  static char buffer[1 << 16];
  ssize_t length = read(fd, buffer, sizeof buffer);
  *chunk = (struct view){buffer, length > 0 ? (size_t)length : 0};
  return length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR));
}
