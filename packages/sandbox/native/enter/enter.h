// The last step on the machine before a driver's program: limits, groups, namespace and user of a sandbox that is about to start.

#ifndef MILLRACE_ENTER_H
#define MILLRACE_ENTER_H

/**
 * Becomes a program after the steps that its options name, up to `--`. These are taken in their order, and may be repeated:
 *   owner UID        of the files that follow
 *   create FILE      make this file, with the `text` that follows
 *   own PATH         give this to the owner
 *   make FOLDER      make this control group
 *   file FILE        write the `text` that follows to it, or `try` to
 *   group FOLDER     enter this control group
 * And these after them, in any order:
 *   mounts FILE      enter this mount namespace
 *   files NUMBER     open files, at most
 *   data BYTES       the memory of each process, at most
 *   filter FILE      becomes file descriptor 4
 *   keep 3           file descriptor 3 stays open; of the others only 0, 1 and 2 do
 *   user UID         become this user, without groups and capabilities
 * Returns only if something failed, after it was printed.
 */
int enter_and_become(char **options);

#endif
