// One bash on a pseudo-terminal. Bash's own output goes to /dev/null, so prompts and notices never mix with a command's output. Each
// command writes to the terminal and reads an empty standard input. A marker in the same stream is its end.

#ifndef MILLRACE_BASH_H
#define MILLRACE_BASH_H

#include "../base/loop.h"
#include "../output/output.h"

struct bash {
  pid_t pid;
  struct child child;
  struct watch terminal;
  struct bytes typed;
  /** How it ended, once it has and its output was read. */
  bool has_exited;
  bool has_ended;
  bool is_abandoned;
  int exit_code;
  struct timer drain;
  /** The line that is being run, until its marker arrives. */
  bool is_running;
  char nonce[nonce_bytes + 1];
  struct marker_scan scan;
  /** `is_late`: the output came while no line ran. */
  void (*on_output)(void *owner, struct view chunk, bool is_late);
  /** The end of a line: bash is alive, with the line's exit code; or it has ended, with its own. */
  void (*on_end)(void *owner, bool is_alive, int exit_code);
  void *owner;
};

/** Starts it in a folder. Returns null if the kernel refuses. */
struct bash *bash_open(const char *cwd, const struct bash *callbacks);
/** Types a line, which ends with a marker. Bash must be alive, and no other line running. */
void bash_type(struct bash *bash, const char *line);
/** Makes bash print the end marker again: an interrupt may have discarded the line that prints it. */
void bash_repeat_marker(struct bash *bash);
/** Its working directory, unless it has ended or the directory is gone. */
bool bash_cwd(const struct bash *bash, struct bytes *to);
/** Nothing that it prints is wanted any more. It is freed when it has ended; the caller sees to that. */
void bash_abandon(struct bash *bash);

/** Removes the lines that we type, which a terminal with echo on prints. No program's own output looks like this. */
void remove_typed_lines(struct bytes *text, const char *run_line);

#endif
