"""Where kernel log lines come from (/dev/kmsg, a file, a pipe), and how their prefixes are taken off."""
