// The last step on the machine before a driver's program: limits, groups, namespace and user of a sandbox that is about to start.

#ifndef MILLRACE_ENTER_H
#define MILLRACE_ENTER_H

/**
 * Becomes a program under the limits that its options name, in any order, up to `--`:
 *   group FOLDER     enter this control group; repeated
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
