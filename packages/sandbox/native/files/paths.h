// Paths of the sandbox. The agent makes links, so a result that is read by its path must not come from the files of the kernel, or from
// outside the home folder if its path is in there.

#ifndef MILLRACE_PATHS_H
#define MILLRACE_PATHS_H

#include "../base/bytes.h"

/** The absolute path, without `.` and `..`, of a path that is relative to the home folder. */
void resolve_path(const char *path, struct bytes *to);

/** Where an open file really is, so that it cannot change between the check and the reading. False if the kernel does not say. */
bool real_path_of(int fd, struct bytes *to);

/** Whether links led from `path` to a place that it must not reach. */
bool is_outside(const char *path, const char *real);

/**
 * The target that the copy of a link gets: unchanged, or relative if it is absolute and inside. False if it leaves the folder, so that a
 * reader of the copy reads only what was copied. `path` is that of the link, relative to the folder.
 */
bool inner_target(const char *path, const char *target, const char *folder, struct bytes *to);

#endif
