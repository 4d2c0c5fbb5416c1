"""The floor: posix_spawn(3) of /bin/true and its end, once per line of standard input, from a process that is small."""

import os
import sys

for _ in sys.stdin:
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
    print(flush=True)
