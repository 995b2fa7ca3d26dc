// The executor: process 1 of a sandbox. It connects to its worker, replies to each call with one frame, and exits when the connection
// closes. Because it is process 1 of its namespace, every process in the sandbox ends with it. It has one thread, so no signal from inside
// the sandbox can end it. Arguments: the folder shared with the worker (socket, env.json, limits.json), the folder for the executor's
// files, the home folder, the folder with its Python program, and optionally a loopback port to connect to instead of the socket. With `spawn`
// as its first argument, it is what the worker starts on the machine, once, to start sandboxes; with `enter`, the first step of one of these: it
// enters what limits a sandbox, and becomes the driver's program.

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/json.h"
#include "base/loop.h"
#include "enter/enter.h"
#include "loopback/loopback.h"
#include "process/calls.h"
#include "process/process.h"
#include "python/session.h"
#include "shell/session.h"
#include "spawn/spawn.h"
#include "wire/link.h"

/** The worker reads it as: this image cannot be used. EX_CONFIG in sysexits.h, and `badImageExitCode` in wire/exit-code.ts. */
enum { bad_image = 78 };

static void end_with(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

/** A checked JSON file of the shared folder. */
static struct bytes read_json(const char *folder, const char *name) {
  struct bytes path = {0}, text = {0};
  char chunk[4096];
  bytes_print(&path, "%s/%s", folder, name);
  int fd = open(path.data, O_RDONLY | O_CLOEXEC);
  for (ssize_t length; fd >= 0 && (length = read(fd, chunk, sizeof chunk)) > 0;) bytes_add(&text, chunk, (size_t)length);
  if (fd < 0 || !json_check(bytes_view(&text))) end_with("the executor cannot read its settings");
  close(fd);
  bytes_free(&path);
  return text;
}

/** Variables that describe the container runtime, or the shell that started it. */
static bool is_of_runtime(const char *variable) {
  static const char *names[] = {"OLDPWD=", "PROMPT_COMMAND=", "PS1=", "PWD=", "SHLVL=", "_="};
  if (strncmp(variable, "APPTAINER", 9) == 0 || strncmp(variable, "SINGULARITY", 11) == 0) return true;
  for (size_t index = 0; index < sizeof names / sizeof *names; index += 1)
    if (strncmp(variable, names[index], strlen(names[index])) == 0) return true;
  return false;
}

/** What the image sets for its programs, and over it what the worker sets. */
static void read_env(const char *folder) {
  extern char **environ;
  char **env = env_copy((char *[]){NULL});
  for (char **at = environ; *at != NULL; at += 1) {
    const char *equals = strchr(*at, '=');
    if (equals == NULL || is_of_runtime(*at)) continue;
    char **more = env_with(env, (struct view){*at, (size_t)(equals - *at)}, view_of(equals + 1));
    env_free(env);
    env = more;
  }
  struct bytes text = read_json(folder, "env.json");
  struct json_walk walk = {.value = bytes_view(&text)};
  while (json_next(&walk)) {
    struct bytes name = {0}, value = {0};
    json_string(walk.key, &name);
    json_string(walk.item, &value);
    char **more = env_with(env, bytes_view(&name), bytes_view(&value));
    env_free(env);
    env = more;
    bytes_free(&name);
    bytes_free(&value);
  }
  bytes_free(&text);
  setting.env = env;
}

static void read_limits(const char *folder) {
  struct bytes text = read_json(folder, "limits.json");
  json_number(json_get(bytes_view(&text), "processes"), &setting.max_processes);
  json_number(json_get(bytes_view(&text), "memory_mib"), &setting.max_memory_mib);
  bytes_free(&text);
}

static const struct {
  const char *method;
  void (*run)(const struct request *request);
} methods[] = {
    {"shell.run", shell_run},        {"python.run", python_run},      {"exec", run_exec},
    {"program.open", open_program},  {"program.write", write_program}, {"program.read", read_program},
    {"program.close", close_program}, {"file.read", read_file},         {"file.write", write_file},
    {"file.copy", copy_file},        {"folder.make", make_folder},    {"folder.read", read_folder},
    {"loopback.listen", listen_on_loopback}, {"loopback.close", close_listener}, {"connection.write", write_connection},
    {"connection.end", end_connection}, {"connection.ack", ack_connection}, {"connection.close", close_connection},
};

static void take_request(struct view method, const struct request *request) {
  for (size_t index = 0; index < sizeof methods / sizeof *methods; index += 1)
    if (view_is(method, methods[index].method)) return methods[index].run(request);
  reply_error(request->id, "bad-call", 0, "there is no method %.*s", (int)method.length, method.data);
}

/** Programs inherit nothing of what the executor itself may have inherited. */
static void close_inherited(void) {
  if (syscall(SYS_close_range, 3, ~0U, 0) == 0) return;
  for (int fd = 3; fd < 1024; fd += 1) close(fd);
}

int main(int count, char **arguments) {
  if (count > 1 && strcmp(arguments[1], "enter") == 0) return enter_and_become(arguments + 2);
  if (count > 2 && strcmp(arguments[1], "spawn") == 0) spawn_for(arguments[2]);
  if (count < 5) end_with("usage: executor LINK_FOLDER OWN_FOLDER HOME PYTHON_FOLDER [PORT]");
  if (access("/bin/bash", F_OK) < 0) {
    fputs("there is no /bin/bash in this image, and agents need it: add bash to the image\n", stderr);
    return bad_image;
  }
  close_inherited();
  setting.own_folder = arguments[2];
  setting.home = arguments[3];
  setting.python_folder = arguments[4];
  read_env(arguments[1]);
  read_limits(arguments[1]);
  loop_open();
  link_open(arguments[1], count > 5 ? arguments[5] : NULL, take_request);
  link_ready();
  shell_open();
  loop_run();
}
