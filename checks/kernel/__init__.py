"""The kernel log, from a record of /dev/kmsg to a finding.

`source` gets the lines and takes their prefixes off, `parse` says what a line means, `faults` keeps what is
wrong now, and `codes` holds the catalogues of codes. Only `source` does I/O. No parser fails on any bytes: a
line that cannot be read becomes an event of its own.
"""
