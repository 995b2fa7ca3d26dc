// Processes of the sandbox: how programs are started, what /proc says about them, and how they are stopped.

#ifndef MILLRACE_PROCESS_H
#define MILLRACE_PROCESS_H

#include <dirent.h>
#include <sys/types.h>

#include "../base/bytes.h"

/** What every program of the agent is started with. Set once, before the first program. */
struct setting {
  const char *home;
  /** The executor's own folder, where it writes the current command. */
  const char *own_folder;
  /** Where the program that runs Python's cells lies. */
  const char *python_folder;
  /** `NAME=value`, ended by a null. */
  char **env;
  /** 0 if a control group sets the limit. */
  double max_processes;
  double max_memory_mib;
};
extern struct setting setting;

/** A copy of the environment with one more variable, which replaces one of the same name. */
char **env_with(char **env, struct view name, struct view value);
char **env_copy(char **env);
/** Also for other lists of texts that end with a null. */
void env_free(char **env);

struct launch {
  char **argv;
  char **env;
  const char *cwd;
  /** What the program gets as its file descriptors 0, 1, 2 and so on. It inherits no others. */
  const int *files;
  int file_count;
  /** In a session of its own, so that all of it can be signalled. */
  bool has_session;
  /** File 0 is the terminal of its session. */
  bool has_terminal;
};

/**
 * Starts a program under the limits that no control group enforces, and as the kernel's first choice when memory runs out, so that the
 * executor survives. Returns its pid; or 0 with what the kernel said, if it could not be started.
 */
pid_t launch_program(const struct launch *launch, int *error);

/** A zombie counts as gone: it runs nothing and only waits for its parent. */
struct process_stat {
  pid_t pid;
  /** As /proc writes it: R for running, S for sleeping, T for stopped. */
  char state;
  pid_t group;
  pid_t session;
  /** The process group in the foreground of its terminal. */
  pid_t foreground;
};

bool process_read(pid_t pid, struct process_stat *stat);
/** Each process in turn; `proc` is the open folder /proc. */
bool process_next(DIR *proc, struct process_stat *stat);
/** Kills the leader and every process in its session. */
void kill_session(pid_t leader);
/** Kills every process but this one in one call, so that none can escape by forking. */
void kill_everything(void);

/** `null`, or the name of the signal that ended the process as a JSON string. */
void add_signal(struct bytes *to, int status);
/** `null`, or the exit code. */
void add_exit_code(struct bytes *to, int status);

#endif
