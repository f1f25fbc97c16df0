"""The largest resident set of a child process, without the memory of the process that starts it.

A child's ru_maxrss includes what its parent held when it forked. `run` therefore starts the command from a small process,
which is this file and reports the figure. Standard library only.
"""

import os
import subprocess
import sys
import tempfile


def run(command, group=None, **more):
    """(exit code, peak resident bytes, stdout, stderr) of the command, inside the cgroup of the folder `group`; `more` as subprocess.run
    takes it."""
    with tempfile.TemporaryFile() as told:
        starter = [sys.executable, "-I", "-S", "-B", os.path.abspath(__file__), str(told.fileno()), group or ""]
        done = subprocess.run([*starter, *map(str, command)], pass_fds=(told.fileno(),), check=True, capture_output=True, text=True, **more)
        told.seek(0)
        code, peak = told.read().split()
    return int(code), int(peak), done.stdout, done.stderr


def main(told, group, command):
    os.set_inheritable(told, False)
    child = os.fork()
    if child == 0:
        try:
            if group:
                with open(f"{group}/cgroup.procs", "w", encoding="ascii") as processes:
                    processes.write(str(os.getpid()))
            os.execvp(command[0], command)
        finally:
            os._exit(127)
    _, status, usage = os.wait4(child, 0)
    os.write(told, f"{os.waitstatus_to_exitcode(status)} {usage.ru_maxrss * 1024}".encode())


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
