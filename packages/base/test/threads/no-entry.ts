// The entry of a thread that cannot start.

throw new Error('this module does not load');
